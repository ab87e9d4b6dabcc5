/** The examples with traces, in a process that gets an SDK by one of them. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { build as buildAlone } from '../../examples/alone/tracing.ts'
import { build } from '../../examples/tracing.ts'
import { until } from '../support/wait.ts'
import { ask, listen, upstream } from './support.ts'

interface Span { name: string, kind: number, traceId: string, spanId: string, parentSpanId?: string }

test('examples/alone/tracing: without an SDK there is no trace, and all works', async (t) => {
  const url = await listen(t, await buildAlone())
  assert.deepEqual((await ask(`${url}/price`)).json(), { price: 7, traceId: null })
})

test('examples/tracing: the collector gets a server span and its client span by OTLP, and the upstream is in the same trace', async (t) => {
  const spans: Span[] = []
  const services = new Set<string>()
  const collector = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    for (const { resource, scopeSpans } of (JSON.parse(body) as { resourceSpans: Array<{ resource: { attributes: Array<{ key: string, value: { stringValue: string } }> }, scopeSpans: Array<{ spans: Span[] }> }> }).resourceSpans) {
      services.add(resource.attributes.find(({ key }) => key === 'service.name')?.value.stringValue ?? '')
      spans.push(...scopeSpans.flatMap((scope) => scope.spans))
    }
    response.setHeader('content-type', 'application/json').end('{}')
  })
  await new Promise<void>((resolve) => { collector.listen(0, '127.0.0.1', resolve) })
  t.after(() => { collector.close() })
  const one = await upstream(t)
  const app = await build([one.url], `http://127.0.0.1:${(collector.address() as AddressInfo).port}/v1/traces`, 1)
  const url = await listen(t, app)
  assert.equal((await ask(`${url}/a`)).status, 200)
  // What has not been sent yet is, on the way down.
  await app.close()
  await until(() => spans.length === 2, { what: 'two spans' })
  const [server, client] = spans.toSorted((a, b) => a.kind - b.kind)
  assert.deepEqual([server?.name, server?.kind, client?.name, client?.kind], ['GET /*', 2, 'GET', 3])
  assert.deepEqual([client?.traceId, client?.parentSpanId], [server?.traceId, server?.spanId])
  assert.deepEqual([...services], ['edge'])
})
