import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PassThrough } from 'node:stream'
import type { Socket } from 'node:net'
import { ByteReader } from './byte-reader.ts'
import { chunk, lastChunk, readBody, readHead } from './http-bytes.ts'
import type { FieldList } from './http-bytes.ts'

function feed (...pieces: string[]): ByteReader {
  const stream = new PassThrough()
  const reader = new ByteReader(stream as unknown as Socket)
  for (const piece of pieces) stream.write(Buffer.from(piece, 'latin1'))
  stream.end()
  return reader
}

test('a head is read to its blank line wherever the bytes are split, and the rest stays', async () => {
  const text = 'HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nset-cookie: b\r\n\r\nrest'
  for (let at = 1; at < text.length; at++) {
    const reader = feed(text.slice(0, at), text.slice(at))
    const head = await readHead(reader)
    assert.equal(head.startLine, 'HTTP/1.1 200 OK')
    assert.deepEqual(head.headers, [['Set-Cookie', 'a'], ['set-cookie', 'b']])
    assert.equal((await reader.exactly(4)).toString(), 'rest')
    assert.equal(await reader.hasMore(), false)
    assert.equal(await reader.ended, 'fin')
  }
})

test('what cannot come any more is told with the way the connection ended', async () => {
  await assert.rejects(readHead(feed('HTTP/1.1 200')), { name: 'ConnectionEnded', how: 'fin', message: /12 bytes have come/ })
  await assert.rejects(feed('abc').exactly(4), { name: 'ConnectionEnded' })
  await assert.rejects(feed('x'.repeat(50)).until('\n', 10), RangeError)
})

const chunked: FieldList = [['Transfer-Encoding', 'gzip, Chunked']]
const length = (value: string): FieldList => [['content-length', value]]
const bodies: Array<[string, FieldList, string, boolean, string, boolean]> = [
  ['counted', length('5'), 'hello', false, 'hello', true],
  ['counted and cut', length('5'), 'hel', false, 'hel', false],
  ['empty', length('0'), '', false, '', true],
  ['equal lengths', [...length('2'), ...length('2')], 'hi', false, 'hi', true],
  ['different lengths', [...length('2'), ...length('3')], 'hi', false, '', false],
  ['a length of letters', length('two'), 'hi', false, '', false],
  ['up to the end', [], 'hello', true, 'hello', true],
  ['none', [], 'next', false, '', true],
  ['chunked', chunked, '5;a=b\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n', false, 'hello0123456789', true],
  ['chunked and cut in a chunk', chunked, '5\r\nhel', false, 'hel', false],
  ['chunked without its end', chunked, '5\r\nhello\r\n', false, 'hello', false],
  ['chunked with a bad size', chunked, '5\r\nhello\r\nzz\r\n', false, 'hello', false],
  ['chunked with a wrong size', chunked, '2\r\nhello\r\n0\r\n\r\n', false, 'he', false],
  ['chunked with its last line cut', chunked, '0\r\nX: 1\r\n', false, '', false]
]
for (const [name, headers, bytes, untilEnd, body, complete] of bodies) {
  test(`a body is framed as its head says: ${name}`, async () => {
    const result = await readBody(feed(bytes), headers, untilEnd)
    assert.equal(result.body.toString(), body)
    assert.equal(result.complete, complete)
  })
}

test('chunks and trailers are read as they were written', async () => {
  const bytes = [chunk('one'), chunk(Buffer.from('two'), ';x=1'), lastChunk([['X-Sum', '42']])]
  const result = await readBody(feed(...bytes.map(piece => piece.toString('latin1'))), chunked, false)
  assert.deepEqual([result.body.toString(), result.trailers, result.complete], ['onetwo', [['X-Sum', '42']], true])
})
