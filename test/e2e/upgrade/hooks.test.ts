import { deepEqual, equal, ok } from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { rawConnect } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { closing, connected, handshake, inFrontOf, next, refused, webSockets } from './support.ts'

test('the hooks of the app run for a handshake, and see its 101', async (t) => {
  const upstream = await webSockets(t)
  const seen: string[] = []
  const gateway = await inFrontOf(t, upstream, {
    before: (app: FastifyInstance) => {
      app.addHook('onSend', async (_request, reply) => {
        await sleep(5)
        reply.header('x-hook', 'yes')
        seen.push(`onSend ${reply.statusCode}`)
      })
      app.addHook('onResponse', async (_request, reply) => { seen.push(`onResponse ${reply.statusCode}`) })
    }
  })
  const client = await rawConnect(gateway.port)
  t.after(() => { client.destroy() })
  await client.write(handshake())
  const { status, headers } = await client.readHead()
  deepEqual([status, headers.find(([name]) => name === 'x-hook')?.[1], headers.some(([name]) => name === 'x-request-id')], [101, 'yes', true])
  await until(() => seen.length === 2)
  deepEqual(seen, ['onSend 101', 'onResponse 101'])
  client.destroy()
  await gateway.idle()
})

test('what a hook refuses never reaches the upstream', async (t) => {
  const upstream = await webSockets(t)
  const gateway = await inFrontOf(t, upstream, { before: (app: FastifyInstance) => { app.addHook('onRequest', async (_request, reply) => reply.code(401).send('who?')) } })
  deepEqual(await refused(gateway).then(({ status, body }) => [status, body]), [401, 'who?'])
  equal(upstream.handshakes.length, 0)
})

test('a hook that fails after the upstream has switched lets the upstream go', async (t) => {
  const upstream = await webSockets(t)
  const gateway = await inFrontOf(t, upstream, {
    before: (app: FastifyInstance) => { app.addHook('onSend', async (_request, reply) => { if (reply.statusCode === 101) throw new Error('not so') }) }
  })
  const { status, headers } = await refused(gateway)
  deepEqual([status, headers.upgrade], [500, undefined])
  await gateway.idle()
  await until(() => upstream.server.clients.size === 0)
})

test('clients that leave at any moment leave nothing behind', async (t) => {
  const upstream = await webSockets(t)
  const gateway = await inFrontOf(t, upstream)
  await Promise.all(Array.from({ length: 60 }, async (_, i) => {
    const client = await rawConnect(gateway.port)
    void client.write(handshake())
    await sleep(i / 4)
    if (i % 2 === 0) client.reset()
    else client.destroy()
  }))
  await until(() => gateway.lines.all('access').length + gateway.app.shedding.view().inFlight >= 1)
  await gateway.idle()
  await until(() => upstream.server.clients.size === 0)
  ok(gateway.lines.all('access').every(({ reason, status }) => (status === 101 || status === 499) && reason === 'client_cancelled'), JSON.stringify(gateway.lines.all('access')))
  const socket = await connected(t, gateway)
  socket.send('well')
  equal(String((await next(socket)).data), 'well')
  const ended = closing(socket)
  socket.close()
  await ended
})
