import { head } from '../e2e/edge/support.ts'
import type { Part } from './raw-client.ts'

/** Bytes that must be refused. */
export interface RefusedCase {
  parts: Part[]
  /** What the access line tells, where the head could be read. */
  parsed?: [method: string, path: string]
  /** Newer Nodes refuse it in their parser: the line may tell nothing. */
  either?: boolean
  /** The client ends its half behind it. */
  end?: boolean
}

/** A row of the table in docs/http.md: one kind of bytes, with the one status and reason for all of its cases. */
export interface RefusedRow {
  status: number
  reason: string
  cases: Record<string, RefusedCase>
  /** The head may have been forwarded before the body turned out wrong; the upstream never gets it whole. */
  inBody?: boolean
  /** Options of the listener, for rows about limits. */
  server?: Record<string, unknown>
}

const host = 'Host: shop'
const get = (...fields: string[]): string => head('GET /a HTTP/1.1', host, ...fields)
const post = (...fields: string[]): string => head('POST /a HTTP/1.1', host, ...fields)
const chunked = (rest: string): string => post('Transfer-Encoding: chunked') + rest
const line = (start: string): string => head(start, host)

const unread = (cases: Record<string, string | Buffer>): Record<string, RefusedCase> =>
  Object.fromEntries(Object.entries(cases).map(([name, bytes]) => [name, { parts: [bytes] }]))
const read = (cases: Record<string, string>, path?: string): Record<string, RefusedCase> =>
  Object.fromEntries(Object.entries(cases).map(([name, bytes]) => [name, { parts: [bytes], parsed: [bytes.split(' ', 1)[0] as string, path ?? bytes.split(' ', 2)[1] as string] }]))
const badHost = (value: string): string => head('GET /a HTTP/1.1', `Host: ${value}`)
const refused = (cases: Record<string, RefusedCase>, rest: Partial<RefusedRow> = {}): RefusedRow => ({ status: 400, reason: 'bad_request', cases, ...rest })

const manyFields = (count: number): string[] => Array.from({ length: count }, (_, i) => `a${i}: 1`)
const large = (lines: number): string => Array.from({ length: lines }, (_, i) => `X-${i}: ${'x'.repeat(1000)}\r\n`).join('')

/** Heads, by their row in docs/http.md. */
export const refusedHeads: Record<string, RefusedRow> = {
  '`Content-Length` beside `Transfer-Encoding`': refused(unread({
    'length first': post('Content-Length: 6', 'Transfer-Encoding: chunked') + '0\r\n\r\nX',
    'coding first': post('Transfer-Encoding: chunked', 'Content-Length: 6') + '0\r\n\r\nX'
  })),
  '`Content-Length` on two lines, as a list, empty, or not of digits alone': refused({
    ...unread({
      different: post('Content-Length: 5', 'Content-Length: 6') + 'hello',
      equal: post('Content-Length: 5', 'content-length: 5') + 'hello',
      list: post('Content-Length: 5, 5') + 'hello',
      'list without a space': post('Content-Length: 5,5') + 'hello',
      'two numbers': post('Content-Length: 5 5') + 'hello',
      'two numbers, a tab': post('Content-Length: 5\t5') + 'hello',
      plus: post('Content-Length: +5') + 'hello',
      minus: post('Content-Length: -1'),
      'minus nothing': post('Content-Length: -0'),
      hexadecimal: post('Content-Length: 0x5') + 'hello',
      fraction: post('Content-Length: 5.0') + 'hello',
      exponent: post('Content-Length: 5e0') + 'hello',
      parameter: post('Content-Length: 5;') + 'hello',
      'vertical tab': post('Content-Length: \x0b5') + 'hello',
      empty: post('Content-Length:'),
      letters: post('Content-Length: five') + 'hello'
    })
  }),
  '`Content-Length` of more than 2^53 - 1': refused({
    ...read({ 'not exact': post('Content-Length: 9007199254740993') }),
    ...unread({ '20 digits': post('Content-Length: 99999999999999999999'), '40 digits': post(`Content-Length: ${'9'.repeat(40)}`) })
  }),
  '`Transfer-Encoding` that is not `chunked` alone, and any on HTTP/1.0': refused({
    ...unread({
      'chunked twice': post('Transfer-Encoding: chunked, chunked') + '0\r\n\r\n',
      'two lines': post('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked') + '0\r\n\r\n',
      'not last': post('Transfer-Encoding: chunked, gzip') + '0\r\n\r\n',
      'comma behind': post('Transfer-Encoding: chunked,') + '0\r\n\r\n',
      'vertical tab': post('Transfer-Encoding: \x0bchunked') + '0\r\n\r\n'
    }),
    ...read({
      identity: post('Transfer-Encoding: identity') + 'hello',
      unknown: post('Transfer-Encoding: x') + 'hello',
      'gzip beneath': post('Transfer-Encoding: gzip, chunked') + '0\r\n\r\n',
      'comma before': post('Transfer-Encoding: ,chunked') + '0\r\n\r\n',
      tail: post('Transfer-Encoding: chunkedx') + '0\r\n\r\n',
      quoted: post('Transfer-Encoding: "chunked"') + '0\r\n\r\n',
      'HTTP/1.0': head('POST /a HTTP/1.0', 'Transfer-Encoding: chunked') + '2\r\nhi\r\n0\r\n\r\n',
      'HTTP/1.0, kept': head('POST /a HTTP/1.0', 'Connection: keep-alive', 'Transfer-Encoding: chunked') + '2\r\nhi\r\n0\r\n\r\n'
    }),
    empty: { parts: [post('Transfer-Encoding:') + '5\r\nhello\r\n0\r\n\r\n'], parsed: ['POST', '/a'], either: true }
  }),
  'A folded line': refused(unread({
    'in a value': get('X-A: 1', ' 2'),
    'with a tab': get('X-A: 1', '\t2'),
    'the first one': 'GET /a HTTP/1.1\r\n Host: shop\r\n\r\n',
    'in the coding': post('Transfer-Encoding:\r\n chunked') + '0\r\n\r\n'
  })),
  'A bare CR or LF in the head': refused(unread({
    'CR in a value': get('X-A: 1\r2'),
    'CR before the end of a line': get('X-A: 1\r'),
    'LF at a line\'s end': 'GET /a HTTP/1.1\r\nHost: shop\nX-A: 1\r\n\r\n',
    'LF behind the request line': 'GET /a HTTP/1.1\nHost: shop\r\n\r\n',
    'LF at the end of the head': 'GET /a HTTP/1.1\r\nHost: shop\r\n\n',
    'CR at the end of the head': 'GET /a HTTP/1.1\r\nHost: shop\r\n\rX',
    'CR in the target': line('GET /a\rb HTTP/1.1'),
    'LF in the target': line('GET /a\nb HTTP/1.1'),
    'two CR behind the request line': 'GET /a HTTP/1.1\r\r\nHost: shop\r\n\r\n'
  })),
  'NUL or another control byte anywhere in the head': refused(unread({
    'NUL in a value': get('X-A: 1\x002'),
    'NUL in a name': get('X\0A: 1'),
    'NUL in the target': line('GET /a\0b HTTP/1.1'),
    'NUL first': '\0\0\0\0',
    '0x01 in a value': get('X-A: 1\x012'),
    'DEL in a value': get('X-A: 1\x7f2'),
    '0x01 in the query': line('GET /a?\x01 HTTP/1.1'),
    'tab in the query': line('GET /a?\t HTTP/1.1')
  })),
  'A field name that is no token, or with a space before its colon; a line without a name or a colon': refused(unread({
    'space in it': get('X A: 1'),
    'space before the colon': get('X-A : 1'),
    'tab before the colon': get('X-A\t: 1'),
    'before the length\'s colon': post('Content-Length : 5') + 'hello',
    'before the coding\'s colon': post('Transfer-Encoding : chunked') + '0\r\n\r\n',
    'space before it': head('GET /a HTTP/1.1', ' X-A: 1', host),
    quote: get('X"A: 1'),
    parenthesis: get('X(A): 1'),
    latin1: get('X-\xe9: 1'),
    'no name': get(': 1'),
    'no colon': get('nonsense')
  })),
  '`Host` on two lines, missing on HTTP/1.1, or not a host with an optional port': refused(read({
    'two': head('GET /a HTTP/1.1', 'Host: a', 'Host: b'),
    'two equal': head('GET /a HTTP/1.1', 'Host: a', 'host: a'),
    'two on HTTP/1.0': head('GET /a HTTP/1.0', 'Host: a', 'Host: b'),
    'two, and a whole target': head('GET http://shop/a HTTP/1.1', 'Host: a', 'Host: b'),
    'none': head('GET /a HTTP/1.1'),
    'user information': badHost('u@shop'),
    'a path': badHost('shop/a'),
    'a query': badHost('shop?a'),
    'a URL': badHost('http://shop'),
    'a space': badHost('a b'),
    'a tab': badHost('a\tb'),
    'a backslash': badHost('a\\b'),
    'a port of letters': badHost('shop:80a'),
    'a port of six digits': badHost('shop:123456'),
    'a port alone': badHost(':80'),
    'two ports': badHost('a:1:2'),
    'a bracket': badHost('[::1'),
    'a list': badHost('a, b/'),
    'latin1': badHost('caf\xe9')
  }, '/a')),
  'A target that is none, or with user information, dot segments in any spelling, a backslash, a fragment, a bad escape': refused({
    ...unread({
      'no slash': line('GET a HTTP/1.1'),
      'a query alone': line('GET ?a HTTP/1.1'),
      'a latin-1 byte': line('GET /caf\xe9 HTTP/1.1'),
      'OPTIONS with a name': line('OPTIONS foo HTTP/1.1')
    }),
    ...read({
      'a star': line('GET * HTTP/1.1'),
      'dot segments': line('GET /a/../b HTTP/1.1'),
      'escaped dot segments': line('GET /a/%2e%2e/b HTTP/1.1'),
      'dot segments with parameters': line('GET /a/..;x/b HTTP/1.1'),
      'a backslash': line('GET /a\\b HTTP/1.1'),
      'a bad escape': line('GET /%zz HTTP/1.1')
    }),
    ...read({
      'another scheme': line('GET ftp://shop/a HTTP/1.1'),
      'user information': line('GET http://u@shop/a HTTP/1.1'),
      'no host': line('GET http:///a HTTP/1.1')
    }, '/a')
  }),
  'A method that nobody knows, in small letters, and `CONNECT`': refused({
    ...unread({
      'small letters': line('get /a HTTP/1.1'),
      'unknown': line('FETCH /a HTTP/1.1'),
      'of RTSP': line('DESCRIBE /a HTTP/1.1'),
      'none': line(' /a HTTP/1.1')
    }),
    'CONNECT': { parts: [head('CONNECT shop:80 HTTP/1.1', 'Host: shop:80')], parsed: ['CONNECT', ''], either: true }
  }),
  'A version other than HTTP/1.1 and HTTP/1.0, or none': refused({
    ...unread({
      'HTTP/3.0': line('GET /a HTTP/3.0'),
      'HTTP/1.2': line('GET /a HTTP/1.2'),
      'HTTP/11': line('GET /a HTTP/11'),
      'HTTP/1.10': line('GET /a HTTP/1.10'),
      'HTTP/01.1': line('GET /a HTTP/01.1'),
      'HTTP/1': line('GET /a HTTP/1'),
      'small letters': line('GET /a http/1.1'),
      'a space behind it': line('GET /a HTTP/1.1 '),
      'SIP': line('GET /a SIP/2.0'),
      'ICE': line('GET /a ICE/1.0')
    }),
    ...read({
      'HTTP/0.9': line('GET /a HTTP/0.9'),
      'HTTP/2.0': line('GET /a HTTP/2.0'),
      'none': 'GET /a\r\n\r\n'
    }, '/a')
  }),
  'Another protocol: TLS on a plain port, the preface of HTTP/2, SOCKS, a PROXY header': refused(unread({
    'TLS': Buffer.from(`16030100c8010000c40303${'00'.repeat(64)}`, 'hex'),
    'HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00',
    'SOCKS': '\x05\x01\x00',
    'PROXY': `PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n${get()}`,
    'SSH': 'SSH-2.0-x\r\n'
  })),
  'A head that ends in the middle': refused({ 'half a line': { parts: ['GET /a HTTP/1.1\r\nHost: sh'], end: true }, 'HTTP/0.9': { parts: ['GET /a\r\n'], end: true } }),
  'A head larger than `maxHeaderBytes`': refused(unread({
    'one field': get(`X-A: ${'x'.repeat(70000)}`),
    'many fields': `GET /a HTTP/1.1\r\nHost: shop\r\n${large(100)}\r\n`,
    'the target': line(`GET /${'x'.repeat(70000)} HTTP/1.1`),
    'a name': get(`X-${'a'.repeat(70000)}: 1`)
  }), { status: 431, reason: 'headers_too_large' }),
  'More than 2,000 fields: none is ever dropped': refused({
    '2001': { parts: [get(...manyFields(2000))], parsed: ['GET', '/a'] },
    '5001': { parts: [get(...manyFields(5000))], parsed: ['GET', '/a'], either: true }
  }, { status: 431, reason: 'headers_too_large' }),
  'A head that is not there within `headersTimeoutMs`, however it trickles': refused({
    'half a head': { parts: ['GET /a HTTP/1.1\r\nHost: sh'] },
    'a byte at a time': { parts: ['GET /a HTTP/1.1\r\nX: ', ...Array.from({ length: 40 }, (_, i) => i % 2 === 0 ? 'x' : 20)] }
  }, { status: 408, reason: 'request_timeout', server: { headersTimeoutMs: 200 } })
}

/** Bodies, by their row in docs/http.md. */
export const refusedBodies: Record<string, RefusedRow> = {
  'A chunk size that is not of hexadecimal digits alone, or too large to count': refused(read({
    letters: chunked('zz\r\nhi\r\n0\r\n\r\n'),
    minus: chunked('-2\r\nhi\r\n0\r\n\r\n'),
    'minus nothing': chunked('-0\r\n\r\n'),
    plus: chunked('+2\r\nhi\r\n0\r\n\r\n'),
    '0x': chunked('0x2\r\nhi\r\n0\r\n\r\n'),
    empty: chunked('\r\nhi\r\n0\r\n\r\n'),
    'a space behind it': chunked('2 \r\nhi\r\n0\r\n\r\n'),
    'a space before it': chunked(' 2\r\nhi\r\n0\r\n\r\n'),
    'a tab behind it': chunked('2\t\r\nhi\r\n0\r\n\r\n'),
    '17 digits': chunked('fffffffffffffffff\r\nhi\r\n0\r\n\r\n')
  }), { inBody: true }),
  'A chunk that is longer than its size, or without its CRLF': refused(read({
    'too small a size': chunked('1\r\nhello\r\n0\r\n\r\n'),
    'LF behind the size': chunked('2\nhi\r\n0\r\n\r\n'),
    'LF everywhere': chunked('2\nhi\n0\n\n'),
    'two CR behind the size': chunked('2\r\r\nhi\r\n0\r\n\r\n'),
    'LF behind the data': chunked('2\r\nhi\n0\r\n\r\n'),
    'CR behind the data': chunked('2\r\nhi\r0\r\n\r\n'),
    'nothing behind the data': chunked('2\r\nhi0\r\n\r\n'),
    'LF behind the last size': chunked('2\r\nhi\r\n0\n\r\n'),
    'LF at the end': chunked('2\r\nhi\r\n0\r\n\n')
  }), { inBody: true }),
  'A chunk extension with a bare CR or LF, a NUL, or that is none': refused(read({
    LF: chunked('2;a\nhi\r\n0\r\n\r\n'),
    CR: chunked('2;a\rb\r\nhi\r\n0\r\n\r\n'),
    NUL: chunked('2;a\0\r\nhi\r\n0\r\n\r\n'),
    'a space': chunked('2;a b\r\nhi\r\n0\r\n\r\n'),
    'a space before it': chunked('2 ;a\r\nhi\r\n0\r\n\r\n'),
    'an open quote': chunked('2;a="b\r\nhi\r\n0\r\n\r\n')
  }), { inBody: true }),
  'Chunk extensions of more than 16 KiB': refused(read({
    'at the first chunk': chunked(`2;${'x'.repeat(20000)}\r\nhi\r\n0\r\n\r\n`),
    'at the last chunk': chunked(`2\r\nhi\r\n0;a="${'x'.repeat(20000)}"\r\n\r\n`)
  }), { status: 413, reason: 'body_too_large', inBody: true }),
  'Trailers that are no fields, or frame the message': refused(read({
    'a space in the name': chunked('0\r\nX A: 1\r\n\r\n'),
    LF: chunked('0\r\nX: 1\n\r\n'),
    folded: chunked('0\r\nX: 1\r\n 2\r\n\r\n'),
    NUL: chunked('0\r\nX: a\0\r\n\r\n'),
    'Content-Length': chunked('0\r\nContent-Length: 5\r\n\r\n'),
    'Transfer-Encoding': chunked('0\r\nTransfer-Encoding: chunked\r\n\r\n')
  }), { inBody: true }),
  'Trailers larger than `maxHeaderBytes`': refused(read({ 'many fields': chunked(`0\r\n${large(100)}\r\n`), 'one field': chunked(`0\r\nX: ${'x'.repeat(70000)}\r\n\r\n`) }), { status: 431, reason: 'headers_too_large', inBody: true }),
  'A body that is not there within `requestTimeoutMs`, however it trickles': refused({
    'a part of it': { parts: [`${post('Content-Length: 10')}hello`], parsed: ['POST', '/a'] },
    'a size, a digit at a time': { parts: [chunked(''), ...Array.from({ length: 60 }, (_, i) => i % 2 === 0 ? '0' : 20)], parsed: ['POST', '/a'] },
    'an extension without end': { parts: [chunked('2;'), ...Array.from({ length: 60 }, (_, i) => i % 2 === 0 ? 'x' : 20)], parsed: ['POST', '/a'] },
    'trailers without end': { parts: [chunked('0\r\n'), ...Array.from({ length: 60 }, (_, i) => i % 2 === 0 ? 'X: 1\r\n' : 20)], parsed: ['POST', '/a'] }
  }, { status: 408, reason: 'request_timeout', inBody: true, server: { headersTimeoutMs: 200, requestTimeoutMs: 300 } })
}
