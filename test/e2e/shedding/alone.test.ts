/** load-shedding without the other plugins: nobody else sees to it that its places come back. */
import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import { loadShedding } from '../../../index.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { head } from '../edge/support.ts'

const get = (path: string): string => head(`GET ${path} HTTP/1.1`, 'Host: shop')
const pressure = { maxEventLoopDelayMs: 0, maxEventLoopUtilization: 0 }

async function start (t: TestContext, maxInFlight: number, before: (app: FastifyInstance) => void = () => {}): Promise<{ app: FastifyInstance, port: number, asked: () => number }> {
  const app = Fastify()
  t.after(() => app.close())
  before(app)
  await app.register(loadShedding, { maxInFlight, pressure })
  let asked = 0
  app.get('/hold', () => {
    asked++
    return new Promise(() => {})
  })
  app.get('/quick', async () => 'quick')
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { app, port: (app.server.address() as AddressInfo).port, asked: () => asked }
}

for (const ending of ['destroy', 'reset'] as const) {
  test(`without edge the places of pipelined requests come back when their connection ends by ${ending}`, async (t) => {
    const { app, port, asked } = await start(t, 4)
    const client = await rawConnect(port)
    await client.write(get('/hold').repeat(3))
    await until(() => asked() === 3)
    assert.equal(app.shedding.view().inFlight, 3)
    client[ending]()
    await until(() => app.shedding.view().inFlight === 0, { what: 'every place given back' })
    assert.equal((await rawRequest(port, get('/quick'))).status, 200)
  })
}

test('without edge pipelined requests that are answered give each place back once', async (t) => {
  const { app, port } = await start(t, 4)
  const { responses } = await rawRequest(port, get('/quick').repeat(3), { methods: ['GET', 'GET', 'GET'] })
  assert.deepEqual(responses.map((each) => each.text()), ['quick', 'quick', 'quick'])
  await until(() => app.shedding.view().inFlight === 0)
})

test('a client that left while an earlier hook was at work takes no place', async (t) => {
  let goOn = (): void => {}
  const gate = new Promise<void>((resolve) => { goOn = resolve })
  let waiting = 0
  const { app, port, asked } = await start(t, 4, (instance) => {
    instance.addHook('onRequest', async (request) => {
      if (request.url !== '/hold') return
      waiting++
      await gate
    })
  })
  const client = await rawConnect(port)
  await client.write(get('/hold').repeat(3))
  await until(() => waiting === 3)
  client.destroy()
  await until(() => new Promise<boolean>((resolve) => { app.server.getConnections((_error, count) => { resolve(count === 0) }) }), { what: 'the connection to be gone' })
  goOn()
  assert.equal((await rawRequest(port, get('/quick'))).status, 200)
  await until(() => app.shedding.view().inFlight === 0, { what: 'every place given back' })
  assert.equal(asked(), 0)
})
