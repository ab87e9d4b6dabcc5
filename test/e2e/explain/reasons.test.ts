/** Every reason that a client can meet: its record says why, with the numbers. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { startUpstream } from '../../../bin/scripted-upstream.ts'
import { failures, type Reason } from '../../../lib/failure.ts'
import type { RequestRecord } from '../../../plugins/flight-recorder.ts'
import { selfSigned } from '../../config/certificate.ts'
import { answer, answering, partOfBody, rawUpstream, reset, send, stall } from '../../support/faulty-upstream.ts'
import { assertNotStalled, onlyPool, startGateway, unlessStalled } from '../../support/gateway.ts'
import { closedPort } from '../../support/ports.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { deafPort } from '../forwarder/deaf-port.ts'
import { tlsServer } from '../forwarder/tls-server.ts'
import { get, request } from '../forwarder/support.ts'
import { connected, webSockets } from '../upgrade/support.ts'
import { holding, recordFor, recordOf, scene } from './support.ts'

interface Case {
  /** Provokes it. */
  provoke: (t: TestContext) => Promise<RequestRecord>
  /** What the explanation has to say. */
  says: RegExp
  check?: (record: RequestRecord) => void
}

const busy = { pressure: { maxHeapUsedBytes: 1, maxEventLoopDelayMs: 0, maxEventLoopUtilization: 0 } }
const limits = (timeouts: object) => ({ pool: { timeouts } })

/** A gateway whose first request waits at the upstream while the second comes. */
async function second (t: TestContext, options: Parameters<typeof scene>[2]): Promise<RequestRecord> {
  const { gateway, upstream } = await scene(t, holding, options)
  const first = await rawConnect(gateway.port)
  t.after(() => { first.destroy() })
  await first.write(get)
  await until(() => upstream.requests.length === 1)
  return recordOf(gateway, await rawRequest(gateway.port, get))
}

async function refusedBy (t: TestContext, upstream: string, options: object = {}): Promise<RequestRecord> {
  const gateway = await startGateway(t, { upstreams: [upstream], ...options })
  return recordOf(gateway, await rawRequest(gateway.port, get, { timeoutMs: 15000 }))
}

async function answered (t: TestContext, ...[handler, options, bytes = get]: [Parameters<typeof scene>[1], Parameters<typeof scene>[2]?, (Buffer | string)?]): Promise<RequestRecord> {
  const { gateway } = await scene(t, handler, options)
  return recordOf(gateway, await rawRequest(gateway.port, bytes))
}

const cases: Record<Reason, Case> = {
  shed_capacity: {
    provoke: (t) => second(t, { shedding: { maxInFlight: 1 } }),
    says: /^The gate was full: 1 of 1 place of the gate taken\./,
    check: ({ gate, kept, timeline }) => { assert.deepEqual([gate, kept, timeline.admitted, timeline.picked], [{ limit: 1, inFlight: 1 }, 'refused', null, null]) }
  },
  shed_pressure: {
    provoke: async (t) => {
      const { gateway } = await scene(t, answering(), { shedding: busy })
      await until(() => gateway.app.shedding.view().pressure.under, { what: 'a first reading' })
      return recordOf(gateway, await rawRequest(gateway.port, get))
    },
    says: /^The proxy itself was under pressure: heap [\d.]+ MiB, limit 1 bytes; 0 of 256 places of the gate taken\.$/,
    check: ({ readings, limits: found }) => { assert.ok((readings?.heapUsedBytes ?? 0) > (found?.maxHeapUsedBytes ?? 0)) }
  },
  shed_priority: {
    provoke: (t) => second(t, { shedding: { maxInFlight: 4, priorities: { normal: 0.5, low: 0.25 } }, routes: [{ path: '/*', pool: onlyPool, priority: 'low' }] }),
    says: /^Requests of low priority may fill 1 place of the gate: 2 of 4 places of the gate taken\.$/
  },
  draining: {
    provoke: async (t) => {
      let answerNow = (): void => {}
      const asked = new Promise<void>((resolve) => { answerNow = resolve })
      const { gateway, upstream } = await scene(t, async (socket) => {
        await asked
        await send(socket, answer())
      })
      const client = await rawConnect(gateway.port)
      t.after(() => { client.destroy() })
      await client.write(get)
      await until(() => upstream.requests.length === 1)
      const closed = gateway.close()
      await until(() => gateway.app.lifecycle.phase === 'draining')
      await client.write(get)
      answerNow()
      const record = await recordFor(gateway, 'draining')
      await closed
      return record
    },
    says: /^The proxy was shutting down, for [\d.]+ m?s by then \(grace 10 s\)\.$/
  },
  no_route: {
    provoke: (t) => answered(t, answering(), { routes: [{ path: '/orders', pool: onlyPool, headers: { 'x-tenant': 'a' } }, { path: '/status', pool: onlyPool }] }, request('GET', '/orders')),
    says: /^None of the 2 routes takes its method, host and path\. For its path there are: \/orders \(header x-tenant does not fit\)\.$/
  },
  route_disabled: {
    provoke: (t) => answered(t, answering(), { routes: [{ path: '/*', pool: onlyPool, disabled: { status: 410 } }] }),
    says: /^Route \/\* is switched off and answers 410 itself\.$/,
    check: ({ status, match }) => { assert.deepEqual([status, match?.by], [410, 'default']) }
  },
  rate_limited: {
    provoke: async (t) => {
      const { gateway } = await scene(t, answering(), { routes: [{ path: '/*', pool: onlyPool, rateLimit: { max: 1 } }] })
      await rawRequest(gateway.port, get)
      return recordOf(gateway, await rawRequest(gateway.port, get))
    },
    says: /^Route \/\* takes 1 request in 60 s by client-address; there was room again in (60|59[\d.]*) s\.$/
  },
  upstream_capacity: {
    provoke: (t) => second(t, { pool: { maxInFlightPerUpstream: 1 } }),
    says: /^Nobody of pool shop had room: 127\.0\.0\.1:\d+: 1 of 1 exchange in flight\.$/,
    check: ({ candidates: [only], timeline }) => {
      assert.deepEqual([only?.used, only?.why, only?.load?.inFlight, only?.load?.limit], [false, 'capacity', 1, 1])
      assert.ok(timeline.admitted !== null && timeline.picked === null)
    }
  },
  no_upstream_healthy: {
    provoke: async (t) => {
      const port = await closedPort(t)
      const gateway = await startGateway(t, { pools: { shop: { upstreams: [{ url: `http://127.0.0.1:${port}` }, { url: 'http://127.0.0.1:9', weight: 0 }], health: { intervalMs: 20 } } } })
      await until(() => (gateway.app.health.get('shop', `127.0.0.1:${port}`)?.streak ?? 0) > 1)
      return recordOf(gateway, await rawRequest(gateway.port, get))
    },
    says: /^Nobody of pool shop was healthy: 127\.0\.0\.1:\d+: unhealthy since \S+: \d+ checks? failed in a row, the last at \S+ \(connect_refused, \d+ ms\); 127\.0\.0\.1:9: its weight is 0\.$/,
    check: ({ candidates }) => { assert.deepEqual(candidates.map(({ why }) => why), ['unhealthy', 'weight_zero']) }
  },
  breaker_open: {
    provoke: async (t) => {
      const { gateway } = await scene(t, (socket) => { reset(socket) }, { pool: { breaker: { consecutiveFailures: 1, openMs: 30000, jitter: 0 } } })
      await rawRequest(gateway.port, get)
      return recordOf(gateway, await rawRequest(gateway.port, get))
    },
    says: /^The breakers of pool shop let nobody through: 127\.0\.0\.1:\d+: breaker open for [\d.]+ m?s after 1 failure in a row \(consecutiveFailures 1; last: connection_reset\), admits again in (30|29[\d.]*) s; it has opened once\.$/,
    check: ({ at, candidates: [only] }) => {
      assert.equal(only?.state, 'open')
      assert.deepEqual(only.breaker?.opening, { cause: 'consecutive_failures', limit: 1, failures: 1, failure: 'connection_reset', again: null })
      assert.ok(Date.parse(only.openedAt ?? '') <= Date.parse(at) + 100)
      assert.ok(Math.abs(Date.parse(only.reopenAt ?? '') - Date.parse(at) - 30000) < 2000)
    }
  },
  connect_refused: {
    provoke: async (t) => refusedBy(t, `http://127.0.0.1:${await closedPort(t)}`),
    says: /^The connection was refused\. 127\.0\.0\.1:\d+: connect_refused after [\d.]+ ms \(connect ECONNREFUSED .*\)\. Retries are off\.$/,
    check: ({ candidates: [only], attempts: [attempt] }) => { assert.deepEqual([only?.why, only?.used, attempt?.outcome, attempt?.permit, attempt?.sentAt], ['picked', true, 'failure', 'closed', null]) }
  },
  connect_timeout: {
    provoke: async (t) => refusedBy(t, `http://127.0.0.1:${await deafPort(t)}`, limits({ connectMs: 150 })),
    says: /^No connection was made in time \(limit 150 ms\)\. 127\.0\.0\.1:\d+: connect_timeout after \d+ ms /
  },
  dns_failed: {
    provoke: (t) => refusedBy(t, 'http://nobody.invalid:80'),
    says: /^The name of the upstream could not be resolved\. nobody\.invalid:80: dns_failed after [\d.]+ m?s /
  },
  tls_failed: {
    provoke: async (t) => refusedBy(t, `https://127.0.0.1:${await tlsServer(t, selfSigned('shop.internal'))}`),
    says: /^There was no TLS that could be trusted\. 127\.0\.0\.1:\d+: tls_failed /
  },
  protocol_mismatch: {
    provoke: (t) => answered(t, answering(), {}, request('POST', '/pkg.Service/Do', { 'Content-Type': 'application/grpc', TE: 'trailers' }, 'x')),
    says: /^gRPC needs HTTP\/2, and pool shop has http2: off\.$/
  },
  connection_reset: {
    provoke: (t) => answered(t, (socket) => { reset(socket) }),
    says: /^The upstream closed the connection before it answered\. 127\.0\.0\.1:\d+: connection_reset after /
  },
  headers_timeout: {
    provoke: (t) => answered(t, holding, limits({ headersMs: 100 })),
    says: /^The upstream did not answer in time \(limit 100 ms\)\. 127\.0\.0\.1:\d+: headers_timeout after \d+ ms\. Retries are off\.$/,
    check: ({ timeline }) => { assert.ok(timeline.sent !== null && timeline.head === null && timeline.connect !== null && timeline.end >= timeline.sent + 99) }
  },
  deadline_exceeded: {
    provoke: (t) => answered(t, holding, limits({ totalMs: 100 })),
    says: /^The time for the whole exchange was over \(limit 100 ms\)\. 127\.0\.0\.1:\d+: deadline_exceeded after \d+ ms\. Retries are off\.$/,
    check: ({ deadline }) => { assert.deepEqual([deadline?.totalMs, deadline?.leftMs], [100, 0]) }
  },
  response_invalid: {
    provoke: (t) => answered(t, answering(Buffer.from('HTTP/1.1 99 Odd\r\nContent-Length: 0\r\n\r\n'))),
    says: /^The upstream sent what is no answer\. 127\.0\.0\.1:\d+: response_invalid after /
  },
  body_truncated: {
    provoke: (t) => answered(t, (socket) => partOfBody(socket)),
    says: /^The answer was cut off\. 127\.0\.0\.1:\d+: body_truncated after /
  },
  body_idle_timeout: {
    provoke: (t) => answered(t, (socket) => partOfBody(socket, { ending: 'stall' }), limits({ bodyIdleMs: 100 })),
    says: /^Nothing more came, or nothing more was taken, for too long \(limit 100 ms\)\. 127\.0\.0\.1:\d+: body_idle_timeout after /
  },
  tunnel_idle_timeout: {
    provoke: async (t) => {
      const upstream = await webSockets(t)
      const gateway = await startGateway(t, { upstreams: [upstream.url], routes: [{ path: '/*', pool: onlyPool, upgradeIdleMs: 100 }] })
      await connected(t, gateway)
      return recordFor(gateway, 'tunnel_idle_timeout')
    },
    says: /^Nothing passed through the tunnel for too long \(limit 100 ms\)\.$/,
    check: ({ status, attempts: [attempt] }) => { assert.deepEqual([status, attempt?.outcome], [101, 'success']) }
  },
  client_cancelled: {
    provoke: async (t) => {
      const { gateway, upstream } = await scene(t, holding)
      const client = await rawConnect(gateway.port)
      await client.write(get)
      await until(() => upstream.requests.length === 1)
      client.destroy()
      return recordFor(gateway, 'client_cancelled')
    },
    says: /^The client left after [\d.]+ m?s, while the upstream had not answered\. 127\.0\.0\.1:\d+: cancelled after \d/,
    check: ({ status, kept }) => { assert.deepEqual([status, kept], [499, 'failed']) }
  },
  request_timeout: {
    provoke: (t) => answered(t, holding, limits({ bodyIdleMs: 100 }), 'POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: 5\r\n\r\nhe'),
    says: /^The client did not send its body in time \(limit 100 ms\)\. 127\.0\.0\.1:\d+: request_timeout after /
  },
  body_too_large: {
    provoke: (t) => answered(t, answering(), { server: { maxBodyBytes: 4 } }, request('POST', '/', {}, 'hello')),
    says: /^The request's body has 5 bytes, and 4 bytes are allowed\.$/
  },
  headers_too_large: {
    provoke: (t) => answered(t, answering(), { server: { maxHeaderBytes: 1024 } }, request('GET', '/', { 'X-Long': 'x'.repeat(3000) })),
    says: /^The request's head is larger than the 1024 bytes that are allowed \(server\.maxHeaderBytes\), or has too many fields\.$/
  },
  bad_request: {
    provoke: (t) => answered(t, answering(), {}, request('GET', '/a/../b')),
    says: /^The request is malformed: its target\.$/
  },
  method_not_allowed: {
    provoke: (t) => answered(t, answering(), { routes: [{ path: '/*', pool: onlyPool, methods: ['GET'] }] }, request('DELETE', '/')),
    says: /^The method DELETE is not taken here, but GET, HEAD\.$/
  },
  internal_error: {
    provoke: async (t) => {
      const { gateway } = await scene(t, answering(), {
        before: (app) => { app.addHook('preHandler', async ({ raw }) => { if (raw.url === '/broken') throw new Error('a mistake') }) }
      })
      return recordOf(gateway, await rawRequest(gateway.port, request('GET', '/broken')))
    },
    says: /^Something failed in the proxy itself: the log has "internal_error" with this request id\.$/
  }
}

for (const [reason, { provoke, says, check }] of Object.entries(cases) as Array<[Reason, Case]>) {
  test(`${reason}: the request id of the answer finds why, with the numbers`, async (t) => {
    await unlessStalled(async () => {
      const record = await provoke(t)
      if (failures[reason].blames) assertNotStalled(record.attempts)
      assert.equal(record.reason, reason)
      assert.match(record.explanation, says)
      assert.ok(record.kept === 'refused' || record.kept === 'failed')
      if (failures[reason].stage !== 'request') assert.equal(record.path?.startsWith('/'), true)
      check?.(record)
    })
  })
}

test('a member that passive observation has taken out says why', async (t) => {
  const [bad, other] = [await rawUpstream((socket) => { reset(socket) }), await rawUpstream(answering({ status: 500 }))]
  for (const each of [bad, other]) t.after(() => each.close())
  const gateway = await startGateway(t, { upstreams: [bad.url, other.url], pool: { ejection: { mode: 'enforce', consecutiveFailures: 2, baseMs: 30000 } } })
  const record = await until(async () => {
    const found = await recordOf(gateway, await rawRequest(gateway.port, get))
    return found.candidates[0]?.why === 'ejected' ? found : null
  })
  assert.deepEqual(record.candidates[0]?.ejection, { trigger: 'consecutive', failures: 2, total: null })
  assert.match(record.candidates[0].detail, /^ejected by passive observation for another [\d.]+ s: 2 failures in a row$/)
})

test('a head that never became a request has a record, too, and says what the parser met', async (t) => {
  const { gateway } = await scene(t, answering())
  const got = await rawRequest(gateway.port, 'GET / HTTP/1.1\r\nHost: shop\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello')
  const record = await recordOf(gateway, { header: () => undefined, json: got.json })
  assert.deepEqual([record.reason, record.path, record.kept], ['bad_request', null, 'refused'])
  assert.match(record.explanation, /^The request is malformed: .+ \(HPE_UNEXPECTED_CONTENT_LENGTH\)\.$/, 'what the parser met')
})

test('an upload that grows over its limit is explained by the limit', async (t) => {
  const { gateway } = await scene(t, (socket) => stall(socket), { server: { maxBodyBytes: 4 } })
  const got = await rawRequest(gateway.port, 'POST / HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n')
  assert.match((await recordOf(gateway, got)).explanation, /^The request's body grew larger than allowed\. 127.* \(the request body is larger than 4 bytes\)\./)
})

test('plain HTTP at an https port is told in words, and not as OpenSSL has it', async (t) => {
  const plain = await startUpstream()
  t.after(() => plain.close())
  const gateway = await startGateway(t, { upstreams: [plain.url.replace('http:', 'https:')] })
  const { explanation, attempts: [attempt] } = await recordOf(gateway, await rawRequest(gateway.port, get))
  assert.match(explanation, /^There was no TLS that could be trusted\. \S+: tls_failed after [\d.]+ m?s \([a-z ]+ \(ERR_SSL_\w+\)\)\. Retries are off\.$/)
  assert.equal(gateway.lines.find(({ msg }) => msg === 'upstream_error')?.['error'], attempt?.error)
})
