/** Checks that want a field in the body of the answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HealthOptions } from '../../../config/schema.ts'
import { harness, ok, RawUpstream, until, type Answer } from './fixtures.ts'

const json = { pointer: '/status', equals: 'UP' }
const up = '{"status":"UP"}'
const answer = (body: string, head = ''): string => `HTTP/1.1 200 OK\r\n${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
const padded = (size: number): string => up.replace('{', `{${' '.repeat(size - up.length)}`)

const table: Array<[name: string, answer: Answer, cause: string, options?: Partial<HealthOptions>]> = [
  ['the value', answer(up, 'Content-Type: application/json\r\n'), 'check_passed'],
  ['the value, with no type named', answer(up), 'check_passed'],
  ['the value, called a page', answer(up, 'Content-Type: text/html\r\n'), 'check_passed'],
  ['the value in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{"status\r\n7\r\n":"UP"}\r\n0\r\n\r\n', 'check_passed'],
  ['the value, ended by the connection', (socket) => socket.end(`HTTP/1.0 200 OK\r\n\r\n${up}`), 'check_passed'],
  ['the value with another good status', answer(up).replace('200', '207'), 'check_passed'],
  ['another value', answer('{"status":"DOWN"}'), 'json_mismatch'],
  ['no such field', answer('{"state":"UP"}'), 'json_mismatch'],
  ['a page', answer('<html>UP</html>', 'Content-Type: application/json\r\n'), 'json_invalid'],
  ['no body', answer(''), 'json_invalid'],
  ['204', 'HTTP/1.1 204 No Content\r\n\r\n', 'json_invalid'],
  ['204 that names a length', 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n', 'json_invalid'],
  ['as much as is read', answer(padded(65536)), 'check_passed'],
  ['one byte more', answer(padded(65537)), 'body_too_large'],
  ['a body that never ends', (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n')
    const more = (): void => { while (!socket.destroyed && socket.write(' '.repeat(16384))); }
    socket.on('drain', more)
    more()
  }, 'body_too_large'],
  ['a body that is cut', (socket) => socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n${up}`), 'body_truncated'],
  ['a body that stands still', `HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n${up}`, 'timeout', { timeoutMs: 400 }],
  ['the value with a status that does not pass', answer(up).replace('200 OK', '503 Any'), 'status_503'],
  ['another value with a status that does not pass', answer('{}').replace('200 OK', '500 Any'), 'status_500'],
  ['too much with a status that does not pass', answer(padded(65537)).replace('200 OK', '500 Any'), 'status_500'],
  ['a number, strictly', answer('{"status":1}'), 'check_passed', { json: { pointer: '/status', equals: 1 } }],
  ['a number as text', answer('{"status":"1"}'), 'json_mismatch', { json: { pointer: '/status', equals: 1 } }],
  ['null', answer('{"status":null}'), 'check_passed', { json: { pointer: '/status', equals: null } }],
  ['the whole body', answer('"UP"'), 'check_passed', { json: { pointer: '', equals: 'UP' } }]
]

for (const [name, given, cause, options = {}] of table) {
  test(`${name}: ${cause}, and the next check is sound`, async (t) => {
    const upstream = await new RawUpstream(given, answer(up)).listen(t)
    const { app, check } = await harness(t, { upstreams: [upstream.url], health: { json, ...options } })
    const result = await check()
    assert.deepEqual([result.cause, result.passed], [cause, cause === 'check_passed'])
    assert.equal(app.health.list()[0]!.healthy, cause === 'check_passed')
    if (options.json === undefined) assert.equal((await check()).cause, 'check_passed')
    await until('one connection is left at most', () => upstream.sockets.size <= 1)
    await app.close()
    await until('the upstream has no connection', () => upstream.sockets.size === 0)
  })
}

test('the body is asked for as it is, only where it is read', async (t) => {
  const upstream = await new RawUpstream(answer(up)).listen(t)
  const { check } = await harness(t, { upstreams: [upstream.url, { url: upstream.url, id: 'other' }], health: { json } })
  await check()
  assert.match(upstream.requests[0]!, /\r\naccept-encoding: identity\r\n/i)
  const plain = await harness(t, { upstreams: [upstream.url] })
  await plain.check()
  assert.doesNotMatch(upstream.requests[1]!, /accept-encoding/i)
})

test('answers that differ over a kept connection are each judged by their own body', async (t) => {
  const upstream = await new RawUpstream(answer(up), answer('{"status":"DOWN"}'), answer(up), ok).listen(t)
  const { check } = await harness(t, { upstreams: [upstream.url], health: { json } })
  const causes: string[] = []
  for (let round = 0; round < 4; round++) causes.push((await check()).cause)
  assert.deepEqual(causes, ['check_passed', 'json_mismatch', 'check_passed', 'json_invalid'])
  assert.equal(upstream.accepted, 1)
})
