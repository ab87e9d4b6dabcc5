/** Events at somebody else's address. */
import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import { parseConfig } from '../../config/parse.ts'
import { redactConfig } from '../../config/redact.ts'
import eventJournal, { type JournalEvent } from '../../plugins/event-journal.ts'
import eventWebhook, { type EventWebhookOptions } from '../../plugins/event-webhook.ts'
import { collectGarbage } from '../support/garbage.ts'
import { closedPort } from '../support/ports.ts'
import { until, within } from '../support/wait.ts'

interface Delivery { headers: IncomingHttpHeaders, body: { run: string, host: string, dropped: number, events: JournalEvent[] } }

/** Somebody who takes deliveries, as `answer` says. */
async function receiver (t: TestContext, answer: (response: ServerResponse, count: number) => void): Promise<{ url: string, deliveries: Delivery[] }> {
  const deliveries: Delivery[] = []
  const server = createServer((incoming, response) => {
    let text = ''
    incoming.setEncoding('utf8').on('data', (part: string) => { text += part }).on('end', () => {
      deliveries.push({ headers: incoming.headers, body: JSON.parse(text) as Delivery['body'] })
      answer(response, deliveries.length)
    })
  })
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => { server.once('listening', resolve) })
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?key=secret`, deliveries }
}

async function appWith (t: TestContext, options: EventWebhookOptions): Promise<{ app: FastifyInstance, lines: string[] }> {
  const lines: string[] = []
  const app = Fastify({ logger: { stream: { write: (line: string) => { lines.push(line) } } } }) as unknown as FastifyInstance
  t.after(() => app.close())
  await app.register(eventJournal)
  await app.register(eventWebhook, { random: () => 0, ...options })
  await app.ready()
  return { app, lines }
}

test('events of one moment go together, in order, with the fields that are wanted', async (t) => {
  const { url, deliveries } = await receiver(t, (response) => { response.end() })
  const { app } = await appWith(t, { url, headers: { authorization: 'Bearer hook' } })
  const sent = [app.events.record('one', { n: 1 }), app.events.record('two')]
  const [delivery] = await until(() => deliveries.length > 0 ? deliveries : null)
  assert.deepEqual(delivery?.body.events, sent)
  assert.deepEqual([delivery.body.run, delivery.body.dropped, delivery.headers.authorization, delivery.headers['content-type']], [app.events.run, 0, 'Bearer hook', 'application/json'])
  await until(() => app.eventWebhook.view().delivered === 2)
  assert.deepEqual(app.eventWebhook.view(), { enabled: true, queued: 0, delivered: 2, dropped: 0, failing: null })
})

test('only the types that are wanted are sent', async (t) => {
  const { url, deliveries } = await receiver(t, (response) => { response.end() })
  const { app } = await appWith(t, { url, types: ['my.wanted', 'admin_write'] })
  for (const type of ['other', 'my.wanted', 'proxy_started', 'admin_write', 'other']) app.events.record(type)
  await until(() => deliveries.length > 0)
  assert.deepEqual(deliveries.flatMap(({ body }) => body.events.map(({ type }) => type)), ['my.wanted', 'admin_write'])
})

test('what fails is tried again, told once, and told when it is over; nothing is lost or sent twice', async (t) => {
  const { url, deliveries } = await receiver(t, (response, count) => { response.writeHead(count === 1 ? 503 : 200).end() })
  const { app, lines } = await appWith(t, { url })
  app.events.record('one')
  await until(() => app.eventWebhook.view().failing !== null)
  assert.equal(app.eventWebhook.view().failing?.error, 'status 503')
  app.events.record('two')
  await until(() => app.eventWebhook.view().failing === null && app.eventWebhook.view().queued === 0, { timeoutMs: 10000 })
  const taken = deliveries.slice(1).flatMap(({ body }) => body.events.map(({ type }) => type))
  assert.deepEqual(taken, ['one', 'webhook_failing', 'two', 'webhook_recovered'])
  assert.equal(lines.filter((line) => line.includes('"msg":"webhook_failing"')).length, 1)
  assert.ok(lines.every((line) => !line.includes('secret')), 'the address is a secret')
})

test('a queue that is full drops the oldest, and the next delivery says how many', async (t) => {
  let open = false
  const { url, deliveries } = await receiver(t, (response) => { response.writeHead(open ? 200 : 500).end() })
  const { app } = await appWith(t, { url, maxQueued: 3 })
  app.events.record('e0')
  await until(() => deliveries.length === 1)
  for (let i = 1; i <= 10; i++) app.events.record(`e${i}`)
  await until(() => app.eventWebhook.view().dropped === 9)
  assert.equal(app.eventWebhook.view().queued, 3)
  open = true
  await until(() => app.eventWebhook.view().failing === null, { timeoutMs: 10000 })
  const { body } = deliveries.at(-1) as Delivery
  assert.ok(body.events.some(({ type }) => type === 'e10'))
  assert.ok(deliveries.some((each) => each.body.dropped === 9))
})

test('what is refused for good is dropped, not sent for ever', async (t) => {
  const { url, deliveries } = await receiver(t, (response) => { response.writeHead(400).end() })
  const { app } = await appWith(t, { url, types: ['the.one'] })
  app.events.record('the.one')
  await until(() => app.eventWebhook.view().dropped === 1)
  assert.deepEqual([app.eventWebhook.view().queued, deliveries.length], [0, 1])
})

test('who asks for time gets it; another address is asked at once, and what was under way to the first one is broken off', async (t) => {
  const busy = await receiver(t, (response, count) => { if (count === 1) response.writeHead(429, { 'retry-after': '120' }).end() })
  const next = await receiver(t, (response) => { response.end() })
  const { app } = await appWith(t, { url: busy.url, types: ['the.one'] })
  app.events.record('the.one', { n: 1 })
  await until(() => app.eventWebhook.view().failing !== null)
  await new Promise((resolve) => { setTimeout(resolve, 800) })
  assert.equal(busy.deliveries.length, 1, 'the first back-off without it would have been over')
  app.eventWebhook.configure({ url: `${busy.url}&again`, types: ['the.one'], timeoutMs: 60000 })
  assert.equal(app.eventWebhook.view().failing, null)
  await until(() => busy.deliveries.length === 2)
  app.eventWebhook.configure({ url: next.url, types: ['the.one'] })
  app.events.record('the.one', { n: 2 })
  await until(() => app.eventWebhook.view().delivered === 2)
  assert.deepEqual(next.deliveries.flatMap(({ body }) => body.events.map(({ n }) => n)), [1, 2])
  assert.deepEqual(app.eventWebhook.view(), { enabled: true, queued: 0, delivered: 2, dropped: 0, failing: null })
})

test('what JSON has no word for is said otherwise, and keeps nothing back', async (t) => {
  const { url, deliveries } = await receiver(t, (response) => { response.end() })
  const { app } = await appWith(t, { url })
  app.events.record('the.one', { n: 2n ** 64n, since: new Date(0), toJSON () { throw new Error('never asked') } })
  await until(() => app.eventWebhook.view().delivered === 1)
  assert.deepEqual(deliveries.flatMap(({ body }) => body.events.map(({ n, since }) => [n, since])), [['18446744073709551616', '1970-01-01T00:00:00.000Z']])
})

test('nobody there, and one who does not answer: the app closes all the same, soon', async (t) => {
  const { app: alone } = await appWith(t, { url: `http://127.0.0.1:${await closedPort(t)}/` })
  alone.events.record('one')
  await until(() => alone.eventWebhook.view().failing !== null)
  assert.equal(alone.eventWebhook.view().failing?.error, 'ECONNREFUSED')
  await within(alone.close())
  const { url, deliveries } = await receiver(t, () => {})
  const { app } = await appWith(t, { url, timeoutMs: 60000 })
  app.events.record('one')
  await until(() => deliveries.length === 1)
  await within(app.close())
})

test('what is left when the app closes is still sent', async (t) => {
  const { url, deliveries } = await receiver(t, (response) => { response.end() })
  const { app } = await appWith(t, { url })
  app.events.record('last words')
  await app.close()
  assert.deepEqual(deliveries.flatMap(({ body }) => body.events.map(({ type }) => type)), ['last words'])
})

test('a delivery that takes too long is given up, whatever is collected meanwhile', async (t) => {
  const { url, deliveries } = await receiver(t, () => {})
  const { app } = await appWith(t, { url, timeoutMs: 300 })
  app.events.record('one')
  await until(() => deliveries.length === 1)
  await collectGarbage()
  await until(() => app.eventWebhook.view().failing !== null)
  assert.equal(app.eventWebhook.view().failing?.error, 'no answer within 300 ms')
})

test('its address and the values of its fields are shown nowhere, and what is wrong with them is told', () => {
  const config = (webhook: object): ReturnType<typeof parseConfig> => parseConfig({ pools: { shop: { upstreams: [{ url: 'http://127.0.0.1:9001' }] } }, events: { webhook } }, 'the test')
  const shown = JSON.stringify(redactConfig(config({ url: 'https://hooks.example.com/T0/very-secret', headers: { 'x-anything': 'very-secret' } })))
  assert.doesNotMatch(shown, /very-secret|hooks\.example/)
  for (const [webhook, error] of [
    [{ url: 'ftp://very-secret' }, /events\.webhook\.url: must be an http or https URL/],
    [{ url: 'http://user:very-secret@host/' }, /events\.webhook\.url: must not have credentials/],
    [{ url: 'http://host/', headers: { Host: 'x' } }, /events\.webhook\.headers\.Host: is made by the delivery itself/],
    [{ url: 'http://host/', types: ['my.own', 'breaker_transitions'] }, /events\.webhook\.types\[1\]: is no type of event, got "breaker_transitions"; did you mean "breaker_transition"\? Known: proxy_started, .*webhook_recovered, and those of your own plugins/]
  ] as const) {
    assert.throws(() => config(webhook), (thrown: Error) => error.test(thrown.message) && !thrown.message.includes('very-secret'))
  }
})
