/** The flight recorder over HTTP. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import { Ajv } from 'ajv'
import adminRoutes from '../../../routes/admin/index.ts'
import { RequestList, RequestView } from '../../../routes/admin/schemas-requests.ts'
import { recordOf, scene, type Scene } from '../../e2e/explain/support.ts'
import { request } from '../../e2e/forwarder/support.ts'
import { answer, reset, send } from '../../support/faulty-upstream.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'

async function withAdmin (t: TestContext): Promise<Scene & { admin: FastifyInstance }> {
  const made = await scene(t, (socket, { target }) => target === '/bad' ? reset(socket) : send(socket, answer()))
  made.gateway.app.recorder.configure({ sampleRatio: 1 })
  const admin = Fastify() as unknown as FastifyInstance
  t.after(() => admin.close())
  await admin.register(adminRoutes, { source: made.gateway.app, loopbackOnly: true })
  return { ...made, admin }
}

const ajv = new Ajv({ strict: false, validateFormats: false })
function conforms (schema: object, value: unknown): void {
  assert.ok(ajv.validate(schema, value), JSON.stringify(ajv.errors))
}

test('a request is explained as JSON by its schema, and as text to who asks for that', async (t) => {
  const { gateway, admin } = await withAdmin(t)
  const got = await rawRequest(gateway.port, request('GET', '/bad'))
  const { requestId } = got.json() as { requestId: string }
  const record = await recordOf(gateway, got)
  const json = await admin.inject(`/requests/${requestId}`)
  assert.deepEqual([json.statusCode, json.json()], [200, JSON.parse(JSON.stringify(record))])
  conforms(RequestView, json.json())
  for (const member of ['requestId', 'at', 'route', 'pool', 'status', 'reason', 'gate', 'candidates', 'attempts']) assert.ok(member in json.json(), member)

  const text = await admin.inject({ url: `/requests/${requestId}`, headers: { accept: 'text/plain' } })
  assert.equal(text.headers['content-type'], 'text/plain; charset=utf-8')
  assert.match(text.body, new RegExp(`^${requestId}: GET /bad -> 502 connection_reset\n`))
  assert.match(text.body, /\n {2}127\.0\.0\.1:\d+ {2}picked {2}closed {3}was tried\n/)
  for (const accept of ['*/*', 'application/json', 'application/json, text/plain', 'text/html']) {
    assert.match(String((await admin.inject({ url: `/requests/${requestId}`, headers: { accept } })).headers['content-type']), /json/)
  }
})

test('what an operator or a client wrote harms no terminal that shows the text', async (t) => {
  const { gateway, admin } = await withAdmin(t)
  const { app } = gateway
  app.breakers.get('shop', gateway.upstream().id).force('open', 60_000, 'gone\u001b[2J\n\nPool shop, in panic\u009b31m\u202e\r')
  const record = await recordOf(gateway, await rawRequest(gateway.port, request('GET', '/a%1b')))
  assert.deepEqual([record.reason, record.path], ['breaker_open', '/a%1b'])
  const text = await admin.inject({ url: `/requests/${record.requestId}`, headers: { accept: 'text/plain' } })
  assert.doesNotMatch(text.body.replaceAll('\n', ''), /[\p{Cc}\p{Cf}]/u)
  assert.doesNotMatch(text.body, /^Pool shop, in panic/m)
  assert.match(text.body, /forced open for [\d.]+ m?s[ \n]\(gone\\u001b\[2J\\u000a\\u000aPool shop, in panic\\u009b31m\\u202e\\u000d\)/)
})

test('an unknown id is a 404 that says why', async (t) => {
  const { gateway, admin } = await withAdmin(t)
  const missing = await admin.inject('/requests/nobody-1')
  assert.deepEqual([missing.statusCode, missing.headers['content-type']], [404, 'application/problem+json'])
  assert.match(missing.json().detail, /^there is no record of request "nobody-1": no request of this id has ended in this process since /)
  gateway.app.recorder.configure({ enabled: false })
  assert.match((await admin.inject('/requests/nobody-1')).json().detail, /the recorder is off/)
})

test('they are listed, the newest first, by what is asked for', async (t) => {
  const { gateway, admin } = await withAdmin(t)
  for (const path of ['/1', '/bad', '/3']) await recordOf(gateway, await rawRequest(gateway.port, request('GET', path)))
  const list = async (query: string): Promise<string[]> => {
    const { statusCode, body } = await admin.inject(`/requests${query}`)
    assert.equal(statusCode, 200, body)
    const answered = JSON.parse(body) as { requests: Array<{ path: string, attempts: number, explanation: string }> }
    conforms(RequestList, answered)
    return answered.requests.map(({ path }) => path)
  }
  assert.deepEqual(await list(''), ['/3', '/bad', '/1'])
  assert.deepEqual(await list('?reason=connection_reset'), ['/bad'])
  assert.deepEqual(await list(`?pool=shop&upstream=${encodeURIComponent(gateway.upstream().id)}&limit=2`), ['/3', '/bad'])
  assert.deepEqual(await list('?upstream=127.0.0.1:1'), [])
  assert.deepEqual(await list(`?since=${new Date(Date.now() - 60000).toISOString()}`), ['/3', '/bad', '/1'])
  assert.deepEqual(await list(`?since=${new Date(Date.now() + 60000).toISOString()}`), [])
  assert.deepEqual(await list('?kept=failed'), ['/bad'])
  assert.deepEqual(await list('?kept=failed&kept=sample&limit=2'), ['/3', '/bad'])
  for (const wrong of ['?kept=odd', '?kept=', '?distinct=maybe', '?reason=odd', '?limit=0', '?limit=1e400', '?limit=1e2', '?since=yesterday', '?since=9999-99-99T99:99:99Z', '?since=2026-02-31T00:00:00Z', '?since=2026-02-01T00:00:00%2B99:99', '?since=2026-02-01T00:00Z&since=2026-02-01T00:00Z', '?other=1']) assert.equal((await admin.inject(`/requests${wrong}`)).statusCode, 400, wrong)
})

test('of those that are alike the newest tells of the others', async (t) => {
  const { gateway, admin } = await withAdmin(t)
  const ids: string[] = []
  for (const path of ['/bad', '/1', '/bad', '/2', '/bad', '/3']) ids.push((await recordOf(gateway, await rawRequest(gateway.port, request('GET', path)))).requestId)
  const listed = (await admin.inject('/requests?distinct=true&kept=failed&kept=sample')).json() as { requests: Array<{ path: string, alike: object }> }
  conforms(RequestList, listed)
  assert.deepEqual(listed.requests.map(({ path, alike }) => ({ path, alike })), [
    { path: '/3', alike: { count: 3, requestIds: [ids[5], ids[3], ids[1]] } },
    { path: '/bad', alike: { count: 3, requestIds: [ids[4], ids[2], ids[0]] } }
  ])
})

for (const query of ['limit=1000', `distinct=true&upstream=`]) {
  test(`others have their turn while many records are read (${query})`, async (t) => {
    const { gateway, admin } = await withAdmin(t)
    const { recorder } = gateway.app
    await recordOf(gateway, await rawRequest(gateway.port, request('GET', '/bad')))
    for (let i = 0; i < 4; i++) await Promise.all(Array.from({ length: 50 }, () => rawRequest(gateway.port, request('GET', '/bad'))))
    await until(() => recorder.view().records === 201)
    await admin.ready()
    let turns = 0
    let over = false
    const turn = (): void => { if (!over) setImmediate(() => { turns++; turn() }) }
    turn()
    const url = `/requests?${query}${query.endsWith('=') ? gateway.upstream().id : ''}`
    const { requests } = (await admin.inject(url)).json() as { requests: Array<{ alike?: { count: number } }> }
    over = true
    assert.ok(turns >= 40, `${turns} turns`)
    assert.equal(requests[0]?.alike?.count ?? requests.length, 201)
  })
}
