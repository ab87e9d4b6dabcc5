import assert from 'node:assert/strict'
import { test } from 'node:test'
import { valuesOf } from '../../support/http-bytes.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { answer, send } from '../../support/faulty-upstream.ts'
import { accessLines, head, startBoth } from './support.ts'

const made = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const trusting = { server: { trustedProxies: ['127.0.0.1'] } }

const ids: Array<[name: string, lines: string[], kept: boolean]> = [
  ['a plain one', ['req-1.A_b:2'], true],
  ['one of 128 characters', ['a'.repeat(128)], true],
  ['one of 129 characters', ['a'.repeat(129)], false],
  ['none', [], false],
  ['an empty one', [''], false],
  ['one with a space', ['a b'], false],
  ['one with quotes', ['a"b'], false],
  ['one with a latin-1 byte', ['caf\xe9'], false],
  ['one with markup', ['<b>'], false],
  ['one with a comma', ['a,b'], false],
  ['two lines', ['one', 'two'], false]
]
for (const [name, lines, kept] of ids) {
  test(`a trusted peer's request id: ${name} is ${kept ? 'kept' : 'replaced'}`, async (t) => {
    const gateway = await startBoth(t, trusting)
    const response = await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop', ...lines.map((line) => `X-Request-ID: ${line}`)))
    const sent = valuesOf(response.headers, 'x-request-id')
    assert.equal(sent.length, 1)
    if (kept) assert.equal(sent[0], lines[0])
    else assert.match(sent[0] ?? '', made)
    assert.deepEqual(valuesOf(gateway.behind.requests[0]?.headers ?? [], 'x-request-id'), sent)
    assert.equal((await accessLines(gateway, 1))[0]?.['request_id'], sent[0])
  })
}

test('a request id from anybody else is replaced', async (t) => {
  const gateway = await startBoth(t)
  const response = await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop', 'X-Request-Id: mine'))
  assert.match(response.header('x-request-id') ?? '', made)
  assert.equal(gateway.behind.requests[0]?.header('x-request-id'), response.header('x-request-id'))
})

test('the field may have another name, and the usual one is then a field like any', async (t) => {
  const gateway = await startBoth(t, { server: { trustedProxies: ['127.0.0.1'], requestIdHeader: 'X-Trace' } })
  const response = await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop', 'X-Trace: t-1', 'X-Request-Id: r-1'))
  const [seen] = gateway.behind.requests
  assert.deepEqual([response.header('x-trace'), response.header('x-request-id'), seen?.header('x-trace'), seen?.header('x-request-id')], ['t-1', undefined, 't-1', 'r-1'])
})

test('an upstream cannot replace the request id of an answer', async (t) => {
  const gateway = await startBoth(t, trusting, (socket) => send(socket, answer({ headers: [['X-Request-Id', 'theirs']], body: 'x' })))
  const response = await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop', 'X-Request-Id: ours'))
  assert.deepEqual(valuesOf(response.headers, 'x-request-id'), ['ours'])
})

test('refusals carry the id in the field, the document and the log', async (t) => {
  const gateway = await startBoth(t, { ...trusting, routes: [{ path: '/only', pool: 'shop' }] })
  const refused = ['GET /other HTTP/1.1', 'GET /%zz HTTP/1.1', 'GET /a/../b HTTP/1.1', 'TRACE /only HTTP/1.1']
  for (const [index, start] of refused.entries()) {
    const response = await rawRequest(gateway.port, head(start, 'Host: shop', `X-Request-Id: r-${index}`))
    assert.equal(response.header('x-request-id'), `r-${index}`, start)
    assert.equal((response.json() as { requestId: string }).requestId, `r-${index}`)
  }
  const garbage = await rawRequest(gateway.port, 'garbage\r\n\r\n')
  const { requestId } = garbage.json() as { requestId: string }
  assert.match(requestId, made)
  assert.equal(garbage.header('x-request-id'), requestId)
  const lines = await accessLines(gateway, refused.length + 1)
  assert.deepEqual(lines.map((line) => line['request_id']), [...refused.map((_, index) => `r-${index}`), requestId])
})
