import { deepEqual, equal } from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import Fastify from 'fastify'
import edge from '../../../plugins/edge.ts'
import forwarder, { type ForwarderOptions } from '../../../plugins/forwarder.ts'
import upstreamPools from '../../../plugins/upstream-pools.ts'
import { answer, rawUpstream, send } from '../../support/faulty-upstream.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { within } from '../../support/wait.ts'
import { portOf, spawnApp } from '../lifecycle/support.ts'
import { closing, connected, next, refused, webSockets } from './support.ts'

/** Somebody's app with the three plugins that forwarding takes, and a server that Fastify made. */
async function ownApp (t: TestContext, url: string, options: ForwarderOptions = {}) {
  const app = Fastify()
  await app.register(edge)
  await app.register(upstreamPools, { pools: { shop: { upstreams: [{ url }], health: { enabled: false } } } } as never)
  await app.register(forwarder, options)
  app.get('/own', async () => 'own')
  app.route({ method: ['GET', 'POST'], url: '/*', handler: (_request, reply) => { reply.forward('shop') } })
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.after(() => app.close())
  return { app, port: (app.server.address() as AddressInfo).port }
}

test('a forwarder in somebody\'s app carries WebSockets, and closes them with the app', async (t) => {
  const upstream = await webSockets(t)
  const own = await ownApp(t, upstream.url)
  const socket = await connected(t, own)
  socket.send('hi')
  equal(String((await next(socket)).data), 'hi')
  deepEqual([(await refused(own, '/own')).body], ['own'])
  const [here, there] = [closing(socket), closing(upstream.sockets[0] as never)]
  await within(own.app.close())
  deepEqual([(await here).code, (await there).code], [1001, 1001])
})

test('there, another upgrade is a request like any, or refused where its body is lost', async (t) => {
  const upstream = await rawUpstream((socket, { header }) => send(socket, answer({ body: header('upgrade') ?? 'none' })))
  t.after(() => upstream.close())
  const { port } = await ownApp(t, upstream.url)
  const asked = 'Host: shop\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n'
  const plain = await rawRequest(port, [`GET / HTTP/1.1\r\n${asked}\r\n`])
  deepEqual([plain.status, plain.text(), plain.header('connection')], [200, 'none', 'close'])
  const lost = await rawRequest(port, [`POST / HTTP/1.1\r\n${asked}Content-Length: 5\r\n\r\nhello`], { until: 'close' })
  deepEqual([lost.status, lost.ended], [400, 'fin'])
  equal(upstream.requests.length, 1)
})

test('without upgrades, the server\'s event is left to others', async (t) => {
  const upstream = await webSockets(t)
  const { app } = await ownApp(t, upstream.url, { upgrades: false })
  equal(app.server.listenerCount('upgrade'), 0)
})

test('under fastify-cli a WebSocket passes, and a SIGTERM closes it with 1001 and exits with 0', async (t) => {
  const upstream = await webSockets(t)
  const child = spawnApp(t, [upstream.url])
  const socket = await connected(t, { port: await portOf(child) })
  socket.send('hi')
  equal(String((await next(socket)).data), 'hi')
  const ended = closing(socket)
  child.kill()
  equal((await ended).code, 1001)
  equal((await within(child.exit)).code, 0)
})
