import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { named, refuses, row } from '../../e2e/retries/support.ts'
import { inFront, request } from '../../e2e/forwarder/support.ts'
import { startBoth } from '../../e2e/edge/support.ts'
import { answer, answering, partOfBody, rawUpstream, reset, send, stall } from '../../support/faulty-upstream.ts'
import { startGateway } from '../../support/gateway.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until, within } from '../../support/wait.ts'
import { counted, scrape } from './support.ts'
import { valuesOf } from '../../support/exposition.ts'

test('answers are counted by route, method and status, and attempts by their outcome; a 5xx of an upstream is no reason', async (t) => {
  const { gateway } = await inFront(t, (socket, { target }) => send(socket, answer({ status: target === '/api/bad' ? 503 : 200, body: 'x' })), {
    routes: [{ path: '/api/*', pool: 'shop' }, { path: '/users/:id', pool: 'shop', methods: ['GET', 'POST'] }]
  })
  for (const [method, path] of [['GET', '/api/a?secret=1'], ['GET', '/api/b'], ['GET', '/api/bad'], ['POST', '/users/7'], ['GET', '/users/8'], ['GET', '/nowhere'], ['PUT', '/users/8'], ['PROPFIND', '/api/a']] as const) {
    await rawRequest(gateway.port, request(method, path))
  }
  await gateway.idle()
  assert.deepEqual(await counted(gateway, 'edge_requests_total'), {
    'route=/api/*,method=GET,code=200': 2,
    'route=/api/*,method=GET,code=503': 1,
    'route=/users/:id,method=POST,code=200': 1,
    'route=/users/:id,method=GET,code=200': 1,
    'route=none,method=GET,code=404': 1,
    'route=none,method=PUT,code=405': 1,
    'route=/api/*,method=other,code=200': 1
  })
  assert.deepEqual(await counted(gateway, 'edge_request_failures_total'), { 'route=none,reason=no_route': 1, 'route=none,reason=method_not_allowed': 1 })
  const at = `pool=shop,upstream=${gateway.upstream().id}`
  assert.deepEqual(await counted(gateway, 'edge_upstream_requests_total'), { [`${at},outcome=success`]: 5, [`${at},outcome=failure`]: 1 })
  assert.deepEqual(await counted(gateway, 'edge_upstream_errors_total'), {})
  assert.deepEqual(await counted(gateway, 'edge_request_duration_seconds_count'), { 'route=/api/*': 4, 'route=/users/:id': 2, 'route=none': 2 })
  assert.deepEqual(await counted(gateway, 'edge_upstream_duration_seconds_count'), { [at]: 6 })
})

test('what an upstream spoils is counted by its reason, before and behind the head', async (t) => {
  const { gateway } = await inFront(t, (socket, { target }) => target === '/cut' ? partOfBody(socket, { ending: 'reset' }) : reset(socket))
  await rawRequest(gateway.port, request('GET', '/reset'))
  await rawRequest(gateway.port, request('GET', '/cut'))
  await gateway.idle()
  const at = `pool=shop,upstream=${gateway.upstream().id}`
  assert.deepEqual(await counted(gateway, 'edge_upstream_errors_total'), { [`${at},reason=connection_reset`]: 1, [`${at},reason=body_truncated`]: 1 })
  assert.deepEqual(await counted(gateway, 'edge_upstream_requests_total'), { [`${at},outcome=failure`]: 2 })
  assert.deepEqual(await counted(gateway, 'edge_requests_total'), { 'route=/*,method=GET,code=502': 1, 'route=/*,method=GET,code=200': 1 })
  assert.deepEqual(await counted(gateway, 'edge_request_failures_total'), { 'route=/*,reason=connection_reset': 1, 'route=/*,reason=body_truncated': 1 })
})

test('a client that leaves is a 499, and its attempt is cancelled', async (t) => {
  const { gateway, upstream } = await inFront(t, stall)
  const client = await rawConnect(gateway.port)
  await client.write(request('POST', '/x', {}, 'body'))
  await until(() => upstream.requests.length === 1)
  const at = `pool=shop,upstream=${gateway.upstream().id}`
  assert.deepEqual(await counted(gateway, 'edge_upstream_in_flight'), { [at]: 1 })
  assert.deepEqual(await counted(gateway, 'edge_in_flight'), { '': 1 })
  client.destroy()
  await gateway.idle()
  assert.deepEqual(await counted(gateway, 'edge_requests_total'), { 'route=/*,method=POST,code=499': 1 })
  assert.deepEqual(await counted(gateway, 'edge_request_failures_total'), { 'route=/*,reason=client_cancelled': 1 })
  assert.deepEqual(await counted(gateway, 'edge_upstream_requests_total'), { [`${at},outcome=cancelled`]: 1 })
  assert.deepEqual(await counted(gateway, 'edge_upstream_errors_total'), {})
  assert.deepEqual([await counted(gateway, 'edge_upstream_in_flight'), await counted(gateway, 'edge_in_flight')], [{}, {}])
})

test('retries are counted with their route, and what was not retried with its cause', async (t) => {
  const { gateway } = await row(t, [refuses, named('second')], { routes: [{ path: '/a/*', pool: 'shop' }, { path: '/b', pool: 'shop', retry: { retries: 0 } }] })
  for (const path of ['/a/1', '/a/2', '/b']) await rawRequest(gateway.port, request('GET', path))
  await gateway.idle()
  const [first, second] = [0, 1].map((index) => `pool=shop,upstream=${gateway.upstream(index).id}`)
  assert.deepEqual(await counted(gateway, 'edge_retry_total'), { 'route=/a/*': 2 })
  assert.deepEqual(await counted(gateway, 'edge_requests_total'), { 'route=/a/*,method=GET,code=200': 2, 'route=/b,method=GET,code=502': 1 })
  assert.deepEqual(await counted(gateway, 'edge_upstream_requests_total'), { [`${first},outcome=failure`]: 3, [`${second},outcome=success`]: 2 })
  assert.deepEqual(await counted(gateway, 'edge_upstream_errors_total'), { [`${first},reason=connect_refused`]: 3 })
  assert.deepEqual(await counted(gateway, 'edge_not_retried_total'), {})
})

test('an exhausted budget is told, and so is what is left of it', async (t) => {
  const { gateway } = await row(t, [refuses, named('second')], { retry: { budget: { ratio: 0, minPerSecond: 0.1 } } })
  assert.deepEqual(await counted(gateway, 'edge_retry_budget_remaining'), { 'pool=shop': 1 })
  for (let i = 0; i < 3; i++) await rawRequest(gateway.port, request())
  await gateway.idle()
  assert.deepEqual(await counted(gateway, 'edge_retry_budget_remaining'), {})
  assert.deepEqual(await counted(gateway, 'edge_not_retried_total'), { 'pool=shop,cause=budget': 2 })
  assert.deepEqual(await counted(gateway, 'edge_retry_total'), { 'route=/*': 1 })
})

test('copies are attempts at their pool, and counted there as copies', async (t) => {
  const shadow = await rawUpstream(answering({ body: 'copy' }))
  t.after(() => shadow.close())
  const { gateway } = await row(t, [named('only')], { pools: { shadow: { health: { enabled: false }, upstreams: [{ url: shadow.url }] } }, routes: [{ path: '/*', pool: 'shop', mirror: { pool: 'shadow' } }] })
  await rawRequest(gateway.port, request())
  await until(() => shadow.requests.length === 1)
  await gateway.idle()
  assert.deepEqual(await counted(gateway, 'edge_mirrors_sent_total'), { 'pool=shadow': 1 })
  assert.deepEqual(await counted(gateway, 'edge_requests_total'), { 'route=/*,method=GET,code=200': 1 })
  assert.deepEqual(Object.values(await counted(gateway, 'edge_upstream_requests_total')), [1, 1])
})

test('what is shed is counted once, with no route', async (t) => {
  const { gateway, upstream } = await inFront(t, stall, { shedding: { maxInFlight: 1 } })
  const client = await rawConnect(gateway.port)
  await client.write(request())
  await until(() => upstream.requests.length === 1)
  assert.equal((await rawRequest(gateway.port, request())).status, 503)
  assert.deepEqual(await counted(gateway, 'edge_shed_total'), { 'reason=shed_capacity,priority=normal': 1 })
  assert.deepEqual(await counted(gateway, 'edge_requests_total'), { 'route=none,method=GET,code=503': 1 })
  client.destroy()
  await gateway.idle()
})

test('bytes that never became a request are counted, without a method and a time', async (t) => {
  const { gateway } = await inFront(t, answering())
  await rawRequest(gateway.port, 'NONSENSE\r\n\r\n')
  assert.deepEqual(await counted(gateway, 'edge_requests_total'), { 'route=none,method=other,code=400': 1 })
  assert.deepEqual(await counted(gateway, 'edge_request_duration_seconds_count'), {})
})

test('a request on the way down is counted as refused, and the one before it as answered', async (t) => {
  let answerNow = (): void => {}
  const asked = new Promise<void>((resolve) => { answerNow = resolve })
  const gateway = await startBoth(t, {}, async (socket) => {
    await asked
    await send(socket, answer({ body: 'first' }))
  })
  const client = await rawConnect(gateway.port)
  t.after(() => client.destroy())
  await client.write(request())
  await until(() => gateway.behind.requests.length === 1)
  const closed = gateway.close()
  await until(() => gateway.app.lifecycle.phase === 'draining')
  const arrived = once(gateway.app.server, 'request')
  await client.write(request())
  await arrived
  answerNow()
  assert.equal((await client.readResponse()).status, 200)
  assert.equal((await client.readResponse()).status, 503)
  await within(closed)
  assert.deepEqual(await counted(gateway, 'edge_requests_total'), { 'route=/*,method=GET,code=200': 1, 'route=none,method=GET,code=503': 1 })
  assert.deepEqual(await counted(gateway, 'edge_request_failures_total'), { 'route=none,reason=draining': 1 })
})

test('a circuit that opens is counted, timed, and seen; a refusal of it is no attempt', async (t) => {
  const { gateway } = await inFront(t, answering({ status: 500 }), { pool: { breaker: { consecutiveFailures: 2 } } })
  const at = `pool=shop,upstream=${gateway.upstream().id}`
  for (let i = 0; i < 3; i++) await rawRequest(gateway.port, request())
  await gateway.idle()
  assert.deepEqual(await counted(gateway, 'edge_breaker_state'), { [`${at},state=open`]: 1 })
  assert.deepEqual(await counted(gateway, 'edge_breaker_transitions_total'), { [`${at},from=closed,to=open`]: 1 })
  assert.deepEqual(await counted(gateway, 'edge_breaker_open_seconds_count'), {})
  assert.ok(((await counted(gateway, 'edge_breaker_open_for_seconds'))[at] ?? 0) > 0)
  assert.ok(((await counted(gateway, 'edge_breaker_open_planned_seconds'))[at] ?? 0) >= 15)
  assert.deepEqual(await counted(gateway, 'edge_upstream_requests_total'), { [`${at},outcome=failure`]: 2 })
  assert.deepEqual(await counted(gateway, 'edge_request_failures_total'), { 'route=/*,reason=breaker_open': 1 })
  assert.ok(((await counted(gateway, 'edge_breaker_not_closed_seconds'))[at] ?? 0) > 0)
  assert.deepEqual(await counted(gateway, 'edge_breaker_open_configured_seconds'), { [at]: 15 })
  gateway.app.breakers.find('shop', gateway.upstream().id)?.reset()
  assert.deepEqual(await counted(gateway, 'edge_breaker_state'), { [`${at},state=closed`]: 1 })
  assert.deepEqual(await counted(gateway, 'edge_breaker_open_seconds_count'), { [at]: 1 })
  assert.deepEqual(await counted(gateway, 'edge_breaker_transitions_total'), { [`${at},from=closed,to=open`]: 1, [`${at},from=open,to=closed`]: 1 })
  assert.deepEqual([await counted(gateway, 'edge_breaker_open_for_seconds'), await counted(gateway, 'edge_breaker_open_planned_seconds'), await counted(gateway, 'edge_breaker_not_closed_seconds')], [{}, {}, {}])
})

test('how long a circuit has not been closed goes on while it opens again', async (t) => {
  const { gateway } = await inFront(t, answering())
  const at = `pool=shop,upstream=${gateway.upstream().id}`
  const breaker = gateway.app.breakers.get('shop', gateway.upstream().id)
  breaker.force('open', 60_000)
  const first = (await counted(gateway, 'edge_breaker_not_closed_seconds'))[at] ?? 0
  assert.ok(first > 0)
  breaker.force('open', 60_000)
  assert.ok(((await counted(gateway, 'edge_breaker_not_closed_seconds'))[at] ?? 0) > first)
  breaker.force('auto')
  assert.deepEqual(await counted(gateway, 'edge_breaker_not_closed_seconds'), {})
})

test('what mode observe would have refused is counted', async (t) => {
  const { gateway } = await inFront(t, answering({ status: 500 }), { pool: { breaker: { mode: 'observe', consecutiveFailures: 1 } } })
  for (let i = 0; i < 3; i++) await rawRequest(gateway.port, request())
  assert.deepEqual(await counted(gateway, 'edge_breaker_would_refuse_total'), { [`pool=shop,upstream=${gateway.upstream().id}`]: 2 })
})

test('a member that is ejected is counted and seen, and one that may not be as held', async (t) => {
  const bad = await Promise.all([0, 1].map(() => rawUpstream(answering({ status: 502 }))))
  t.after(() => Promise.all(bad.map((each) => each.close())))
  const gateway = await startGateway(t, { upstreams: bad.map(({ url }) => url), pool: { ejection: { mode: 'enforce', consecutiveFailures: 1, maxShare: 0.5 } } })
  for (let i = 0; i < 4; i++) await rawRequest(gateway.port, request())
  const ejected = await counted(gateway, 'edge_upstream_ejections_total')
  assert.deepEqual(Object.values(ejected), [1])
  assert.deepEqual(await counted(gateway, 'edge_upstream_ejected'), ejected)
  assert.ok(Object.values(await counted(gateway, 'edge_upstream_ejections_held_total')).length === 1)
  assert.deepEqual(await counted(gateway, 'edge_pool_usable'), { 'pool=shop': 1 })
})

test('a tunnel is counted when it ends, with 101, and in no histogram', async (t) => {
  const { gateway } = await inFront(t, async (socket) => {
    await send(socket, 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n')
    return stall(socket)
  })
  const client = await rawConnect(gateway.port)
  await client.write(request('GET', '/', { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Key': 'x3JJHMbDL1EzLkh9GBhXDw==', 'Sec-WebSocket-Version': '13' }))
  await until(async () => (await counted(gateway, 'edge_tunnels'))[''] === 1, { what: 'the tunnel' })
  assert.deepEqual(await counted(gateway, 'edge_requests_total'), {})
  client.destroy()
  await gateway.idle()
  assert.deepEqual(await counted(gateway, 'edge_requests_total'), { 'route=/*,method=GET,code=101': 1 })
  assert.deepEqual([await counted(gateway, 'edge_tunnels'), await counted(gateway, 'edge_request_duration_seconds_count'), await counted(gateway, 'edge_upstream_duration_seconds_count')], [{}, {}, {}])
})

test('what alerts are built on is there before any traffic', async (t) => {
  const { gateway } = await inFront(t, answering())
  const at = `pool=shop,upstream=${gateway.upstream().id}`
  const families = await scrape(gateway)
  assert.deepEqual(valuesOf(families, 'edge_breaker_state'), { [`${at},state=closed`]: 1, [`${at},state=open`]: 0, [`${at},state=half-open`]: 0 })
  assert.deepEqual(valuesOf(families, 'edge_upstream_alive'), { [at]: 1 })
  assert.deepEqual(valuesOf(families, 'edge_breaker_transitions_total'), { [`${at},from=closed,to=open`]: 0, [`${at},from=open,to=half-open`]: 0, [`${at},from=half-open,to=closed`]: 0, [`${at},from=half-open,to=open`]: 0 })
  const codes = ['none', '/*'].flatMap((route) => [200, 500, 502, 503, 504].map((code) => [`route=${route},method=GET,code=${code}`, 0]))
  assert.deepEqual(valuesOf(families, 'edge_requests_total'), Object.fromEntries(codes))
  assert.deepEqual(valuesOf(families, 'edge_retry_total'), { 'route=none': 0, 'route=/*': 0 })
  assert.deepEqual(valuesOf(families, 'edge_shed_total'), { 'reason=shed_capacity,priority=normal': 0, 'reason=shed_pressure,priority=normal': 0, 'reason=shed_priority,priority=normal': 0, 'reason=shed_priority,priority=low': 0 })
  assert.deepEqual(valuesOf(families, 'edge_config_reloads_total'), { 'result=ok': 0, 'result=rejected': 0 })
  assert.deepEqual(valuesOf(families, 'edge_upstream_requests_total'), { [`${at},outcome=success`]: 0, [`${at},outcome=failure`]: 0, [`${at},outcome=cancelled`]: 0, [`${at},outcome=ignored`]: 0 })
  assert.equal(valuesOf(families, 'edge_pool_panic')['pool=shop'], 0)
  assert.equal(valuesOf(families, 'edge_not_retried_total')['pool=shop,cause=budget'], 0)
})
