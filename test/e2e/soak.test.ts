/**
 * Many requests with random faults on both sides, after which everything that was taken has been given back. `npm test` runs a
 * part of it; `npm run soak` the 200,000.
 */
import assert from 'node:assert/strict'
import { Agent, request as httpRequest, type Server } from 'node:http'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import Fastify from 'fastify'
import { startUpstream } from '../../bin/scripted-upstream.ts'
import breakwater from '../../breakwater.ts'
import { parseConfig } from '../../config/parse.ts'
import { seededRandom } from '../../lib/random.ts'
import { serverOptions } from '../../server.ts'
import { until } from '../support/wait.ts'

const total = Number(process.env['BREAKWATER_SOAK_REQUESTS'] ?? 15000)
const concurrency = 64
const random = seededRandom(20260917)

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

function heapUsed (): number {
  gc()
  gc()
  return process.memoryUsage().heapUsed
}

const connectionsOf = (server: Server): Promise<number> => new Promise((resolve, reject) => {
  server.getConnections((error, count) => { if (error === null) resolve(count); else reject(error) })
})

/** What a client does to its request: most wait for the answer, some leave early or send a body, large or cut off. */
interface Behaviour {
  path: string
  method: string
  bodyBytes: number
  leaveAfterMs: number | null
}

function behaviour (): Behaviour {
  const dice = random()
  const path = dice < 0.1 ? '/bytes/200000' : dice < 0.12 ? '/cut' : dice < 0.14 ? '/reset' : dice < 0.16 ? '/status/404' : dice < 0.17 ? '/slow/40' : '/x'
  const posts = random() < 0.2
  return {
    path: posts ? '/echo' : path,
    method: posts ? 'POST' : 'GET',
    bodyBytes: posts ? Math.floor(random() * (random() < 0.1 ? 300000 : 2000)) : 0,
    leaveAfterMs: random() < 0.08 ? Math.floor(random() * 6) : null
  }
}

/** One request; resolves with the status, or with 0 where there was no whole answer. Never rejects. */
function send (port: number, agent: Agent, { path, method, bodyBytes, leaveAfterMs }: Behaviour): Promise<number> {
  return new Promise((resolve) => {
    const request = httpRequest({ host: '127.0.0.1', port, path, method, agent }, (response) => {
      response.resume()
      response.on('close', () => { resolve(response.complete ? response.statusCode ?? 0 : 0) })
    })
    request.on('error', () => { resolve(0) })
    if (bodyBytes > 0) request.write(Buffer.alloc(bodyBytes, 97))
    request.end()
    if (leaveAfterMs !== null) setTimeout(() => { request.destroy() }, leaveAfterMs)
  })
}

test(`after ${total} requests with random faults nothing is left behind`, { timeout: 600000 }, async (t) => {
  const faults = [
    { name: 'steady', seed: 1 },
    { name: 'failing', seed: 2, failRatio: 0.05 },
    { name: 'cutting', seed: 3, truncateEvery: 50, resetEvery: 70 }
  ]
  const upstreams = await Promise.all(faults.map((each) => startUpstream(each)))
  t.after(() => Promise.all(upstreams.map((upstream) => upstream.close())))
  const config = parseConfig({
    admin: { enabled: false },
    // Full long before growth is judged: what it may hold is not what is left behind.
    recorder: { maxBytes: 262144 },
    shedding: { maxInFlight: 48, pressure: { maxEventLoopUtilization: 0 } },
    pools: {
      default: {
        upstreams: upstreams.map(({ url }) => ({ url })),
        connections: { max: 12 },
        breaker: { openMs: 50, maxOpenMs: 200, window: { minimumRequests: 200 } },
        timeouts: { headersMs: 2000 }
      }
    }
  }, 'the soak')
  // Requests that reached the proxy and have no access line yet, by their ids; and lines that belong to none of them.
  const open = new Set<string>()
  let reached = 0
  const strays: string[] = []
  const log = new Writable({
    write (chunk: Buffer, _encoding, done) {
      for (const line of chunk.toString().split('\n')) {
        if (!line.includes('"msg":"access"')) continue
        const { request_id: id, method } = JSON.parse(line) as { request_id: string, method: string | null }
        // Half a head whose client left never became a request.
        if (method !== null && !open.delete(id)) strays.push(line)
      }
      done()
    }
  })
  const options = serverOptions(config)
  const { genReqId } = options as { genReqId: (raw: unknown) => string }
  const app = Fastify({
    ...options,
    logger: { level: 'info', stream: log },
    genReqId (raw: unknown) {
      reached++
      const id = genReqId(raw)
      open.add(id)
      return id
    }
  })
  await app.register(breakwater, config)
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.after(() => app.close())
  const { port } = app.server.address() as { port: number }
  await until(() => app.readiness().ready, { what: 'readiness' })
  const pool = app.pools.get('default')
  assert.ok(pool)

  const agent = new Agent({ keepAlive: true, maxSockets: concurrency })
  const statuses = new Map<number, number>()
  async function run (requests: number): Promise<void> {
    let left = requests
    await Promise.all(Array.from({ length: concurrency }, async () => {
      while (left-- > 0) {
        const status = await send(port, agent, behaviour())
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }))
  }

  const rested = (): boolean => app.shedding.view().inFlight === 0 &&
    pool.upstreams.every(({ id, inFlight, waiting, busyConnections }) =>
      inFlight === 0 && waiting === 0 && busyConnections === 0 && app.breakers.find('default', id)?.breaker.outstanding === 0)

  // The first part warms the code, the pools and the caches up: growth is judged from there.
  await run(Math.floor(total / 4))
  await until(rested, { what: 'rest after the first part' })
  const before = heapUsed()
  await run(total - Math.floor(total / 4))
  await until(rested, { timeoutMs: 15000, what: 'in-flight counts, queues, connections and permits to be back at 0' })
  agent.destroy()
  await until(async () => await connectionsOf(app.server) === 0, { what: 'the clients\' connections to be gone' })
  await until(() => upstreams.every((upstream) => upstream.stats().inFlight === 0), { what: 'the upstreams to be left alone' })
  // Idle connections are closed after keepAliveMs.
  await until(() => upstreams.every((upstream) => upstream.stats().openConnections <= 1), { timeoutMs: 15000, what: 'the sockets to the upstreams to close' })
  const grown = heapUsed() - before

  t.diagnostic(`statuses (0: no whole answer): ${JSON.stringify(Object.fromEntries([...statuses].toSorted(([a], [b]) => a - b)))}`)
  t.diagnostic(`heap grew by ${Math.round(grown / 1024)} KiB over ${total - Math.floor(total / 4)} requests`)
  assert.ok((statuses.get(200) ?? 0) > total / 2, 'most requests are answered')
  assert.ok((statuses.get(0) ?? 0) > 0, 'some were cut')
  assert.ok(grown < 4 * 1024 * 1024, `the heap grew by ${grown} bytes`)
  assert.ok(reached > total * 0.9 && reached <= total, `${reached} requests reached the proxy`)
  await until(() => open.size === 0, { what: 'an access line for every request that reached the proxy' })
  assert.deepEqual(strays, [], 'never two access lines for one request')
})
