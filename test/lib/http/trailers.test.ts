import assert from 'node:assert/strict'
import { test } from 'node:test'
import { passedAnnouncement, passedTrailers, takesTrailers } from '../../../lib/http/trailers.ts'

const nameOf = (name: Buffer): string => name.toString('latin1').toLowerCase()
const raw = (...parts: string[]): Buffer[] => parts.map((part) => Buffer.from(part, 'latin1'))

test('trailers are taken by whom TE says so, in any list and any case', () => {
  for (const te of ['trailers', 'Trailers', 'gzip, trailers', 'trailers, deflate;q=0.5', ' trailers ']) assert.equal(takesTrailers(te), true, te)
  for (const te of [undefined, '', 'gzip', 'trailer', 'trailersx', 'x trailers']) assert.equal(takesTrailers(te), false, te)
})

test('what may not stand behind a body is left out; the rest stays in its order, repeated and byte for byte', () => {
  const kept = passedTrailers(raw(
    'X-Sum', 'caf\xe9', 'Content-Length', '5', 'Transfer-Encoding', 'chunked', 'Set-Cookie', 'a=1', 'x-sum', '2', 'Authorization', 'Basic x', 'Host', 'evil', 'Cache-Control', 'public',
    'X-Mine', '1', 'Grpc-Status', '0', 'Connection', 'close', 'X-Bad', 'a\x01b', 'Content-Type', 'text/html', 'Digest', 'a\tb'), nameOf, new Set(['x-mine']))
  assert.deepEqual(kept, [['x-sum', 'caf\xe9'], ['x-sum', '2'], ['grpc-status', '0'], ['digest', 'a\tb']])
})

test('a Trailer field announces only what may come', () => {
  assert.equal(passedAnnouncement('X-Sum, Set-Cookie,content-length , X-Mine, grpc-status', new Set(['x-mine'])), 'X-Sum, grpc-status')
  for (const nothing of ['', 'Content-Length', ',,', 'bad name', 'a:b']) assert.equal(passedAnnouncement(nothing, new Set()), '', nothing)
})
