import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { inFront, request } from '../../e2e/forwarder/support.ts'
import { named, refuses, row } from '../../e2e/retries/support.ts'
import { answer, answering, partOfBody, rawUpstream, send, stall } from '../../support/faulty-upstream.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { readExposition } from '../../support/exposition.ts'
import { clientTrace, exporter, parentOf, registerSdk, spansOf, traceparent } from './support.ts'

registerSdk()

test('a trace begins here: a server span, and as its child a client span, which the upstream is told', async (t) => {
  const { gateway, upstream } = await inFront(t, answering({ body: 'hello' }), { routes: [{ path: '/api/*', pool: 'shop' }] })
  assert.equal(gateway.app.tracing.active, true)
  await rawRequest(gateway.port, request('GET', '/api/a?token=secret', { Host: 'shop.example:8080', 'User-Agent': 'curl/8', Authorization: 'Bearer secret', Cookie: 'a=secret' }))
  const [server, client] = await spansOf(gateway, 2)
  assert.deepEqual([server?.kind, server?.name, server?.parentSpanContext, server?.status.code], [SpanKind.SERVER, 'GET /api/*', undefined, SpanStatusCode.UNSET])
  assert.deepEqual(server?.attributes, {
    'http.request.method': 'GET', 'url.path': '/api/a', 'url.scheme': 'http', 'server.address': 'shop.example', 'server.port': 8080, 'client.address': '127.0.0.1',
    'network.protocol.version': '1.1', 'user_agent.original': 'curl/8', 'http.route': '/api/*', 'breakwater.pool': 'shop', 'breakwater.attempts': 1, 'http.response.status_code': 200
  })
  assert.deepEqual([client?.kind, client?.name, client?.parentSpanContext?.spanId, client?.status.code], [SpanKind.CLIENT, 'GET', server?.spanContext().spanId, SpanStatusCode.UNSET])
  assert.deepEqual(client?.attributes, {
    'http.request.method': 'GET', 'url.full': `${upstream.url}/api/a`, 'server.address': '127.0.0.1', 'server.port': upstream.port, 'breakwater.pool': 'shop',
    'breakwater.attempt.kind': 'first', 'http.response.status_code': 200, 'breakwater.outcome': 'success'
  })
  assert.equal(upstream.requests[0]?.header('traceparent'), parentOf(client))
  assert.equal(gateway.lines.find('access')?.['trace_id'], server?.spanContext().traceId)
  const families = readExposition((await gateway.app.edgeMetrics.expose('openmetrics')).text, 'openmetrics')
  const exemplar = families.get('edge_request_duration_seconds')?.samples.flatMap((sample) => sample.exemplar ?? [])[0]
  assert.deepEqual(exemplar?.labels, { request_id: gateway.lines.find('access')?.['request_id'], trace_id: server?.spanContext().traceId })
})

test('a client\'s trace is continued with its state and baggage, and the upstream gets each field once', async (t) => {
  const { gateway, upstream } = await inFront(t, answering())
  await rawRequest(gateway.port, request('GET', '/', { TraceParent: traceparent(), TraceState: 'vendor=1', Baggage: 'tenant=7', 'X-Other': '1' }))
  const [server, client] = await spansOf(gateway, 2)
  assert.deepEqual([server?.spanContext().traceId, server?.parentSpanContext?.spanId, server?.parentSpanContext?.isRemote], [clientTrace, '00f067aa0ba902b7', true])
  const sent = upstream.requests[0]?.headers.filter(([name]) => /trace|baggage|other/i.test(name)).map(([name, value]) => [name.toLowerCase(), value])
  assert.deepEqual(sent, [['x-other', '1'], ['traceparent', parentOf(client)], ['tracestate', 'vendor=1'], ['baggage', 'tenant=7']])
})

test('a client that does not sample is not sampled, and the upstream is told so in the same trace', async (t) => {
  const { gateway, upstream } = await inFront(t, answering())
  await rawRequest(gateway.port, request('GET', '/', { Traceparent: traceparent(false) }))
  await gateway.idle()
  await until(() => gateway.lines.find('access'))
  assert.deepEqual(exporter.getFinishedSpans(), [])
  assert.match(upstream.requests[0]?.header('traceparent') ?? '', new RegExp(`^00-${clientTrace}-(?!00f067aa0ba902b7)[0-9a-f]{16}-00$`))
  assert.equal(gateway.lines.find('access')?.['trace_id'], clientTrace)
})

test('a traceparent that is none begins a new trace', async (t) => {
  const { gateway } = await inFront(t, answering())
  for (const value of ['nonsense', `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`, `${traceparent()}, ${traceparent()}`]) {
    await rawRequest(gateway.port, request('GET', '/', { Traceparent: value }))
    const [server] = await spansOf(gateway, 2)
    assert.equal(server?.parentSpanContext, undefined, value)
  }
})

test('each attempt is a span of its own with its number and its reason, and each upstream is told its own', async (t) => {
  const { gateway, upstreams } = await row(t, [refuses, named('bad', 503), named('good')], { retry: { retries: 2 } })
  await rawRequest(gateway.port, request('GET', '/', { Traceparent: traceparent() }))
  const [server, ...clients] = await spansOf(gateway, 4)
  assert.deepEqual(clients.map(({ attributes, status }) => [attributes['breakwater.attempt.kind'], attributes['http.request.resend_count'], attributes['error.type'], attributes['http.response.status_code'], status.code]), [
    ['first', undefined, 'connect_refused', undefined, SpanStatusCode.ERROR],
    ['retry', 1, '503', 503, SpanStatusCode.ERROR],
    ['retry', 2, undefined, 200, SpanStatusCode.UNSET]
  ])
  for (const { parentSpanContext } of clients) assert.equal(parentSpanContext?.spanId, server?.spanContext().spanId)
  assert.deepEqual(upstreams.slice(1).map(({ requests: [asked] }) => asked?.headers.filter(([name]) => name.toLowerCase() === 'traceparent').map(([, value]) => value)), [[parentOf(clients[1])], [parentOf(clients[2])]])
  assert.deepEqual([server?.attributes['breakwater.attempts'], server?.attributes['error.type'], server?.status.code], [3, undefined, SpanStatusCode.UNSET])
})

test('errors by the conventions: 5xx and broken answers for the server, 4xx too for the client', async (t) => {
  const { gateway } = await inFront(t, (socket, { target }) => target === '/cut' ? partOfBody(socket, { ending: 'reset' }) : send(socket, answer({ status: Number(target.slice(1)) })), {
    routes: [{ path: '/404', pool: 'shop' }, { path: '/500', pool: 'shop' }, { path: '/cut', pool: 'shop' }]
  })
  const { ERROR, UNSET } = SpanStatusCode
  for (const [path, count, ...expected] of [
    ['/404', 2, ['404', ERROR], [undefined, UNSET]],
    ['/500', 2, ['500', ERROR], ['500', ERROR]],
    ['/cut', 2, ['body_truncated', ERROR], ['body_truncated', ERROR]],
    ['/none', 1, undefined, ['no_route', UNSET]]
  ] as const) {
    await rawRequest(gateway.port, request('GET', path))
    const [server, client] = await spansOf(gateway, count)
    assert.deepEqual([client && [client.attributes['error.type'], client.status.code], server && [server.attributes['error.type'], server.status.code]], expected, path)
  }
  gateway.app.breakers.find('shop', gateway.upstream().id)?.force('open', 60000)
  await rawRequest(gateway.port, request('GET', '/404'))
  const [refused] = await spansOf(gateway, 1)
  assert.deepEqual([refused?.attributes['error.type'], refused?.attributes['http.response.status_code'], refused?.status.code], ['breaker_open', 503, ERROR])
})

test('a client that leaves is no error of ours', async (t) => {
  const { gateway, upstream } = await inFront(t, stall)
  const leaving = await rawConnect(gateway.port)
  await leaving.write(request())
  await until(() => upstream.requests.length === 1)
  leaving.destroy()
  const [server, client] = await spansOf(gateway, 2)
  assert.deepEqual([server?.attributes['error.type'], server?.status.code, server?.attributes['http.response.status_code']], ['client_cancelled', SpanStatusCode.UNSET, undefined])
  assert.deepEqual([client?.attributes['breakwater.outcome'], client?.attributes['error.type'], client?.status.code], ['cancelled', undefined, SpanStatusCode.UNSET])
})

test('a method that the conventions do not name, and an address of IPv6, are told as they say', async (t) => {
  const { gateway } = await inFront(t, answering())
  await rawRequest(gateway.port, request('PROPFIND', '/', { Host: '[2001:db8::1]' }))
  const [server, client] = await spansOf(gateway, 2)
  assert.deepEqual([server?.name, client?.name], ['HTTP /*', 'HTTP'])
  assert.deepEqual([server?.attributes['http.request.method'], server?.attributes['http.request.method_original'], server?.attributes['server.address'], server?.attributes['server.port']], ['_OTHER', 'PROPFIND', '2001:db8::1', 80])
})

test('continueFrom trusted: for anybody else a trace begins here, and their baggage goes no further', async (t) => {
  for (const trustedProxies of [[], ['127.0.0.1']]) {
    const { gateway, upstream } = await inFront(t, answering(), { tracing: { continueFrom: 'trusted' }, server: { trustedProxies } })
    await rawRequest(gateway.port, request('GET', '/', { Traceparent: traceparent(), Tracestate: 'vendor=1', Baggage: 'tenant=7', 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'www.example' }))
    const [server, client] = await spansOf(gateway, 2)
    const trusted = trustedProxies.length > 0
    assert.equal(server?.spanContext().traceId === clientTrace, trusted)
    const [asked] = upstream.requests
    assert.deepEqual([asked?.header('traceparent'), asked?.header('tracestate'), asked?.header('baggage')], [parentOf(client), ...trusted ? ['vendor=1', 'tenant=7'] : [undefined, undefined]])
    assert.deepEqual([server?.attributes['url.scheme'], server?.attributes['server.address'], server?.attributes['server.port']], trusted ? ['https', 'www.example', 443] : ['http', 'shop.example', 80])
  }
})

test('a copy has a client span of its own, and says that one, not what the client said', async (t) => {
  const shadow = await rawUpstream(answering())
  t.after(() => shadow.close())
  const { gateway } = await row(t, [named('only')], { pools: { shadow: { health: { enabled: false }, upstreams: [{ url: shadow.url }] } }, routes: [{ path: '/*', pool: 'shop', mirror: { pool: 'shadow' } }] })
  await rawRequest(gateway.port, request('GET', '/', { Traceparent: traceparent(), Tracestate: 'vendor=1' }))
  await until(() => shadow.requests.length === 1)
  const spans = await spansOf(gateway, 3)
  const [server, copy] = [spans.find(({ kind }) => kind === SpanKind.SERVER), spans.find(({ attributes }) => attributes['breakwater.attempt.kind'] === 'copy')]
  assert.deepEqual([copy?.kind, copy?.parentSpanContext?.spanId, copy?.attributes['breakwater.pool'], copy?.attributes['http.response.status_code']], [SpanKind.CLIENT, server?.spanContext().spanId, 'shadow', 200])
  assert.deepEqual(shadow.requests[0]?.headers.filter(([name]) => /^trace/i.test(name)).map(([, value]) => value), [parentOf(copy), 'vendor=1'])
  assert.equal(spans.length, 3)
})

test('no value that may be secret is in a span', async (t) => {
  const { gateway } = await inFront(t, answering())
  for (const target of ['/a?key=s3cret', 'http://user:s3cret@shop.example/a?s3cret#s3cret']) {
    await rawRequest(gateway.port, request('GET', target, { Host: 'shop.example', Authorization: 's3cret', Cookie: 's3cret', 'X-Api-Key': 's3cret' }))
    await gateway.idle()
    await until(() => exporter.getFinishedSpans().length > 0)
    const told = JSON.stringify(exporter.getFinishedSpans().map(({ name, attributes, events, links, status }) => ({ name, attributes, events, links, status })))
    assert.ok(!told.includes('s3cret'), told)
    exporter.reset()
  }
})

test('a span of one\'s own is a child of the request\'s, which a hook finds', async (t) => {
  const { gateway } = await inFront(t, answering(), {
    before: (app) => {
      app.addHook('preHandler', async (asked) => {
        const parent = app.tracing.contextOf(asked)
        if (parent !== null) trace.getTracer('mine').startSpan('mine', {}, parent).end()
      })
    }
  })
  await rawRequest(gateway.port, request())
  const spans = await spansOf(gateway, 3)
  const [server, mine] = [spans.find(({ kind }) => kind === SpanKind.SERVER), spans.find(({ name }) => name === 'mine')]
  assert.equal(mine?.parentSpanContext?.spanId, server?.spanContext().spanId)
})
