import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { RequestHeadReader, type RequestHead } from '../../../lib/http/request-head.ts'

const reader = new RequestHeadReader(['x-user-id', 'x_team'], 'x-request-id')

function read (rawHeaders: string[], method = 'GET'): RequestHead {
  const head = reader.read(['Host', 'shop', ...rawHeaders], method)
  ok(head !== null)
  return head
}

const hopByHop = ['connection', 'keep-alive', 'proxy-connection', 'proxy-authorization', 'proxy-authenticate', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'expect', 'http2-settings']
const owned = ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-prefix', 'x-real-ip', 'forwarded', 'via', 'x-request-id']
const stripped = ['x-user-id', 'x-team']
const taken = [...hopByHop, ...owned, ...stripped, 'host', 'content-length']

describe('request head: fields that pass', () => {
  it('keeps order, spelling, repetition and values', () => {
    const fields = ['Accept', '*/*', 'X-B', '1', 'x-b', '2', 'Cookie', 'a=b', 'Authorization', 'Basic x', 'x_custom', 'y', 'Empty', '', 'Content-Type', 'text/plain', 'Early-Data', '1']
    deepEqual(read(fields).fields, fields)
  })

  it('does not mistake names like Object\'s own for known ones', () => {
    const fields = ['constructor', '1', '__proto__', '2', 'toString', '3', 'hasOwnProperty', '4']
    deepEqual(read(fields).fields, fields)
  })

  it('passes a field whose name only begins or ends like an owned one', () => {
    const fields = ['x-forwarded', '1', 'x-forwarded-for-x', '2', 'vias', '3', 'x-request-ids', '4', 'my-host', '5']
    deepEqual(read(fields).fields, fields)
  })
})

describe('request head: framing and host', () => {
  it('knows how long the body is', () => {
    equal(read([]).contentLength, 0)
    equal(read(['Content-Length', '0']).contentLength, 0)
    equal(read(['Content-Length', '42']).contentLength, 42)
    for (const coding of ['chunked', 'Chunked', 'CHUNKED']) equal(read(['Transfer-Encoding', coding]).contentLength, -1)
    equal(read(['Content-Length', '42', 'Transfer-Encoding', 'chunked']).contentLength, -1)
    equal(read(['Transfer-Encoding', 'chunked', 'Content-Length', '42']).contentLength, -1)
  })

  it('refuses a length that a number cannot hold exactly', () => {
    equal(read(['Content-Length', '9007199254740991']).contentLength, 9007199254740991)
    for (const length of ['9007199254740992', '9007199254740993', '18446744073709551615']) equal(reader.read(['Host', 'a', 'Content-Length', length], 'POST'), null, length)
  })

  it('refuses a transfer coding that would be lost on the way', () => {
    for (const coding of ['gzip, chunked', 'gzip', 'identity', 'chunked, chunked', 'xchunked', '']) equal(reader.read(['Host', 'a', 'Transfer-Encoding', coding], 'POST'), null, coding)
    equal(reader.read(['Host', 'a', 'Transfer-Encoding', 'chunked', 'transfer-encoding', 'chunked'], 'POST'), null)
  })

  it('tells the host, and takes an absent or empty one as none', () => {
    equal(reader.read(['HOST', 'Shop:80'], 'GET')?.host, 'Shop:80')
    equal(reader.read(['Host', ''], 'GET')?.host, '')
    equal(reader.read([], 'GET')?.host, '')
  })

  it('refuses two Host lines and a Host that is none', () => {
    equal(reader.read(['Host', 'a', 'host', 'a'], 'GET'), null)
    equal(reader.read(['Host', '', 'Host', 'b'], 'GET'), null)
    for (const host of ['a b', 'a/b', 'u@h', 'http://a', 'a:b', 'a, b', '::1', 'a?b', 'a#b', 'a\\b']) equal(reader.read(['Host', host], 'GET'), null, host)
  })
})

describe('request head: Max-Forwards', () => {
  it('is counted down for OPTIONS (RFC 9110 section 7.6.2)', () => {
    deepEqual(read(['Max-Forwards', '3'], 'OPTIONS').fields, ['Max-Forwards', '2'])
    deepEqual(read(['max-forwards', '1'], 'OPTIONS').fields, ['max-forwards', '0'])
    deepEqual(read(['Max-Forwards', '0'], 'OPTIONS').fields, ['Max-Forwards', '0'])
  })

  it('is refused when it is none, or there twice', () => {
    for (const value of ['', '-1', '1.5', 'x', '1x', '0x1', '1, 2', '9999999999']) equal(reader.read(['Host', 'a', 'Max-Forwards', value], 'OPTIONS'), null, value)
    equal(reader.read(['Host', 'a', 'Max-Forwards', '1', 'Max-Forwards', '1'], 'OPTIONS'), null)
  })

  it('is a field like any for other methods', () => {
    for (const value of ['3', '0', 'x']) deepEqual(read(['Max-Forwards', value], 'GET').fields, ['Max-Forwards', value])
  })
})

describe('request head: what a Connection line names', () => {
  it('is taken out, in any case and over several lines', () => {
    deepEqual(read(['X-A', '1', 'connection', 'close, x-a', 'X-B', '2', 'Connection', 'X-b ,, x-c', 'x-C', '3', 'X-D', '4']).fields, ['X-D', '4'])
  })

  it('cannot reach what carries the message or who sent it', () => {
    const fields = ['Content-Type', 'a/b', 'Content-Encoding', 'gzip', 'Authorization', 'x', 'Cookie', 'a=b']
    const head = read([...fields, 'Content-Length', '3', 'Connection', 'host, content-length, content-type, content-encoding, authorization, cookie, transfer-encoding, x-forwarded-for'])
    deepEqual(head.fields, fields)
    equal(head.host, 'shop')
    equal(head.contentLength, 3)
  })

  it('cannot reach what is given to the proxy', () => {
    equal(read(['X-Forwarded-For', '1.2.3.4', 'Connection', 'x-forwarded-for']).given.forwardedFor, '1.2.3.4')
  })

  it('may be nothing', () => {
    for (const value of ['', 'close', 'keep-alive', 'Keep-Alive', 'close, keep-alive', ',', ' , ']) deepEqual(read(['Connection', value, 'X-A', '1']).fields, ['X-A', '1'])
  })
})

describe('request head: what is given', () => {
  it('is sorted out, lists joined, of single values the last', () => {
    const { given } = read([
      'X-Forwarded-For', '1.1.1.1', 'x-forwarded-for', '2.2.2.2, 3.3.3.3', 'Forwarded', 'for=a', 'Forwarded', 'for=b', 'Via', '1.0 a', 'Via', '1.1 b',
      'X-Forwarded-Proto', 'http', 'X-Forwarded-Proto', 'https', 'X-Forwarded-Host', 'h', 'X-Forwarded-Port', '1', 'X-Forwarded-Prefix', '/p', 'X-Request-Id', 'id'
    ])
    deepEqual(given, {
      forwardedFor: '1.1.1.1, 2.2.2.2, 3.3.3.3', forwardedProto: 'https', forwardedHost: 'h', forwardedPort: '1', forwardedPrefix: '/p', forwarded: 'for=a, for=b', via: '1.0 a, 1.1 b', requestId: 'id'
    })
  })

  it('does not stay for the next request', () => {
    read(['X-Forwarded-For', '1.1.1.1', 'X-Request-Id', 'id'])
    ok(Object.values(read([]).given).every((value) => value === ''))
  })
})

describe('request head: what is configured', () => {
  it('carries the request id in another field', () => {
    const other = new RequestHeadReader([], 'x-correlation')
    const head = other.read(['X-Correlation', 'id', 'X-Request-Id', 'mine'], 'GET')
    equal(head?.given.requestId, 'id')
    deepEqual(head?.fields, ['X-Request-Id', 'mine'])
  })

  it('strips even what a trusted peer would be believed in', () => {
    equal(new RequestHeadReader(['x-forwarded-for'], 'x-request-id').read(['X-Forwarded-For', '1.1.1.1'], 'GET')?.given.forwardedFor, '')
  })

  it('strips a name with underscores in all its spellings, but never what describes the body', () => {
    const strict = new RequestHeadReader(['x_user_id', 'content_type'], 'x-request-id')
    const head = strict.read(['X_User_Id', '1', 'x-user-id', '2', 'X-User_Id', '3', 'Content_Type', '4', 'Content-Type', 'a/b'], 'GET')
    deepEqual(head?.fields, ['Content-Type', 'a/b'])
  })

  it('refuses to strip or take over what HTTP itself needs', () => {
    for (const name of ['host', 'content-length', 'transfer-encoding', 'connection']) {
      throws(() => new RequestHeadReader([name], 'x-request-id'), { name: 'RangeError', message: new RegExp(`"${name}"`) })
      throws(() => new RequestHeadReader([], name), RangeError)
    }
    // An underscore twin is none of HTTP's own.
    deepEqual(new RequestHeadReader(['content_length'], 'x-request-id').read(['Content-Length', '3'], 'GET')?.contentLength, 3)
  })
})

describe('request head: properties', () => {
  /** Any spelling of a name: letters of either case, and for names with dashes underscores in their places. */
  const spelling = (name: string) => fc.array(fc.boolean(), { minLength: name.length, maxLength: name.length })
    .chain((upper) => fc.array(fc.boolean(), { minLength: name.length, maxLength: name.length }).map((under) =>
      [...name].map((letter, i) => letter === '-' && under[i] === true ? '_' : upper[i] === true ? letter.toUpperCase() : letter).join('')))

  it('lets no hop-by-hop, owned or stripped field pass, in any letter case and with any underscores', () => {
    const name = fc.constantFrom(...taken).chain(spelling)
    const value = fc.constantFrom('x', 'close', 'chunked', '1', 'shop')
    fc.assert(fc.property(fc.array(fc.tuple(name, value), { minLength: 1, maxLength: 6 }), (fields) => {
      // Two spellings of Host are refused as a whole.
      const head = reader.read(fields.flat(), 'GET')
      deepEqual(head?.fields ?? [], [])
    }), { numRuns: 1000 })
  })

  it('keeps every other field, in order, beside them', () => {
    const other = fc.stringMatching(/^[A-Za-z][A-Za-z0-9-]{0,15}$/).filter((name) => !taken.includes(name.toLowerCase()) && name.toLowerCase() !== 'max-forwards')
    const hidden = fc.constantFrom(...taken.filter((name) => !['host', 'connection', 'transfer-encoding'].includes(name))).chain(spelling)
    const field = fc.oneof(fc.record({ name: other, value: fc.string(), stays: fc.constant(true) }), fc.record({ name: hidden, value: fc.constant('1'), stays: fc.constant(false) }))
    fc.assert(fc.property(fc.array(field, { maxLength: 20 }), (fields) => {
      const head = reader.read(fields.flatMap(({ name, value }) => [name, value]), 'GET')
      deepEqual(head?.fields, fields.filter(({ stays }) => stays).flatMap(({ name, value }) => [name, value]))
    }))
  })

  it('reads alike however many names it has seen before', () => {
    const fresh = () => new RequestHeadReader(['x-user-id'], 'x-request-id')
    const seasoned = fresh()
    for (let i = 0; i < 2000; i++) seasoned.read([`x-made-up-${i}`, '1'], 'GET')
    seasoned.read(['x'.repeat(65000), '1'], 'GET')
    const probe = ['Host', 'a', 'X-USER-ID', '1', 'x_user_id', '2', 'Te', '3', 'X-Forwarded-For', '4', 'X-New', '5', `Y${'y'.repeat(100)}`, '6', 'X-USER-ID', '7']
    for (let i = 0; i < 2; i++) deepEqual(seasoned.read(probe, 'GET'), fresh().read(probe, 'GET'))
  })
})
