import assert from 'node:assert/strict'
import { test } from 'node:test'
import { context, propagation, trace } from '@opentelemetry/api'
import { inFront, request } from '../../e2e/forwarder/support.ts'
import { answering } from '../../support/faulty-upstream.ts'
import { rawRequest } from '../../support/raw-client.ts'

test('without an SDK nothing of the API is called for a request, and what the client sent passes as it came', async (t) => {
  const { gateway, upstream } = await inFront(t, answering())
  const methods = [
    ...(['getTracer', 'getTracerProvider', 'getSpan', 'setSpan', 'getActiveSpan', 'isSpanContextValid'] as const).map((name) => t.mock.method(trace, name)),
    ...(['extract', 'inject', 'fields'] as const).map((name) => t.mock.method(propagation, name)),
    ...(['active', 'with'] as const).map((name) => t.mock.method(context, name))
  ]
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  for (let i = 0; i < 3; i++) assert.equal((await rawRequest(gateway.port, request('GET', '/', { TraceParent: traceparent, Baggage: 'a=1' }))).status, 200)
  await gateway.idle()
  assert.equal(gateway.app.tracing.active, false)
  assert.deepEqual(methods.map(({ mock }) => mock.callCount()), methods.map(() => 0))
  assert.deepEqual(upstream.requests.map(({ headers }) => headers.filter(([name]) => /trace|baggage/i.test(name))), Array.from({ length: 3 }, () => [['TraceParent', traceparent], ['Baggage', 'a=1']]))
  assert.equal(gateway.lines.all('access').some((line) => 'trace_id' in line), false)
})
