// What an idle WebSocket or event stream costs, and how thousands of them end. `npm run bench:idle -- --help`
import { writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { built, freePorts, packageRoot, Workshop, type Child } from './children.ts'
import { untilReady } from './measure.ts'
import { cpuSeconds, residentKib } from './proc.ts'

const usage = `npm run bench:idle -- [options]
  --kind KIND     websocket | events (websocket)
  --count N       connections (5000); the proxy needs two descriptors for each: see ulimit -n
  --help`

type Kind = 'websocket' | 'events'

const heads: Record<Kind, string> = {
  websocket: 'GET /socket HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  events: 'GET /events HTTP/1.1\r\nHost: shop\r\nAccept: text/event-stream\r\n\r\n'
}
const firstLines: Record<Kind, string> = { websocket: 'HTTP/1.1 101 ', events: 'HTTP/1.1 200 ' }
/** A close frame with 1001, as a server sends it. */
const goodbye = Buffer.of(0x88, 2, 0x03, 0xe9)
const graceMs = 10_000
const idleSeconds = 10

const say = (text: string): void => { process.stdout.write(`${text}\n`) }

/** A connection whose head has come, and what came since. */
class Idle {
  readonly socket: Socket
  /** It was told 1001. */
  told = false
  /** Performance time of its end; 0: it is open. */
  endedAt = 0

  constructor (socket: Socket) {
    this.socket = socket
    socket.on('data', (bytes: Buffer) => { this.told ||= bytes.subarray(-goodbye.length).equals(goodbye) })
    socket.on('close', () => { this.endedAt = performance.now() })
  }
}

function open (port: number, kind: Kind): Promise<Idle> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => { socket.write(heads[kind]) })
    socket.on('error', reject)
    let text = ''
    socket.on('data', function onHead (bytes: Buffer) {
      text += bytes.toString('latin1')
      if (!text.includes('\r\n\r\n')) return
      socket.off('data', onHead)
      if (text.startsWith(firstLines[kind])) resolve(new Idle(socket))
      else reject(new Error(`answered: ${text.slice(0, 400)}`))
    })
    socket.on('close', () => { reject(new Error('closed before its head')) })
  })
}

/** So many at a time wait for their heads: more than the backlog of a listener would be refused a while. */
const atATime = 100

async function openAll (port: number, kind: Kind, count: number): Promise<Idle[]> {
  const all: Idle[] = []
  while (all.length < count) all.push(...await Promise.all(Array.from({ length: Math.min(atATime, count - all.length) }, () => open(port, kind))))
  return all
}

function startProxy (workshop: Workshop, port: number, upstream: number, count: number): Child {
  const config = join(workshop.place('proxy'), 'breakwater.json')
  writeFileSync(config, JSON.stringify({
    admin: { enabled: false },
    server: { shutdown: { graceMs } },
    shedding: { maxInFlight: count + 100, pressure: { maxEventLoopDelayMs: 0, maxEventLoopUtilization: 0 } },
    pools: { shop: { upstreams: [{ url: `http://127.0.0.1:${upstream}` }], health: { enabled: false }, connections: { max: count + 100 }, timeouts: { bodyIdleMs: 0 } } }
  }))
  const cli = join(packageRoot(), 'node_modules', 'fastify-cli', 'cli.js')
  return workshop.start('proxy', {
    program: process.execPath,
    args: [cli, 'start', '-o', '-l', 'info', '-g', String(graceMs + 2000), '-a', '127.0.0.1', '-p', String(port), built('app.js')],
    env: { BREAKWATER_CONFIG: config }
  })
}

async function measure (workshop: Workshop, kind: Kind, count: number): Promise<void> {
  const [port, upstream] = await freePorts(2) as [number, number]
  const behind = workshop.start('upstream', { program: process.execPath, args: [built('bench/idle-upstream.js'), String(upstream)] })
  await untilReady(behind, upstream, '/', 2)
  const proxy = startProxy(workshop, port, upstream, count)
  await untilReady(proxy, port, '/', 2)
  // What the first ones bring with them belongs to the process.
  for (const { socket } of await openAll(port, kind, atATime)) socket.destroy()
  await sleep(1000)
  const before = residentKib(proxy.pid)
  const all = await openAll(port, kind, count)
  await sleep(2000)
  const used = residentKib(proxy.pid) - before
  const cpu = cpuSeconds(proxy.pid)
  await sleep(idleSeconds * 1000)
  say(`${count} idle (${kind}): ${(used / count).toFixed(1)} KiB resident each (${Math.round(before / 1024)} MiB before, ${Math.round((before + used) / 1024)} MiB with them)`)
  say(`CPU while nothing happens: ${((cpuSeconds(proxy.pid) - cpu) / idleSeconds * 100).toFixed(1)} % of a core`)
  const lost = all.filter(({ endedAt }) => endedAt > 0).length
  if (lost > 0) throw new Error(`${lost} ended by themselves`)
  const began = performance.now()
  proxy.signal('SIGTERM')
  await proxy.gone
  const exited = performance.now()
  await sleep(500)
  const ended = all.map(({ endedAt }) => endedAt).filter(at => at > 0)
  say(`stopped with ${graceMs} ms of grace: ${all.filter(({ told }) => told).length} told 1001, ${ended.length} ended, the last after ${Math.round(Math.max(...ended) - began)} ms; ${proxy.ended() ?? ''} after ${Math.round(exited - began)} ms`)
}

const { values } = parseArgs({ options: { kind: { type: 'string', default: 'websocket' }, count: { type: 'string', default: '5000' }, help: { type: 'boolean', default: false } } })
const count = Number(values.count)
if (values.help) {
  say(usage)
} else if (!(values.kind in heads) || !(Number.isInteger(count) && count >= 1)) {
  process.stderr.write(`${usage}\n`)
  process.exitCode = 2
} else {
  const workshop = new Workshop()
  process.once('exit', () => workshop.kill())
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => { void workshop.close().then(() => process.exit(130)) })
  try {
    await measure(workshop, values.kind as Kind, count)
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
    process.exitCode = 1
  } finally {
    await workshop.close()
  }
  // Ours may still be open.
  process.exit()
}
