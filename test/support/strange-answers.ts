import { answer } from './faulty-upstream.ts'
import { chunk, lastChunk, toBytes } from './http-bytes.ts'
import type { FieldList } from './http-bytes.ts'

/** `100 Continue`, to go before an answer. */
export const continue100 = toBytes('HTTP/1.1 100 Continue\r\n\r\n')

/** `103 Early Hints`, to go before an answer. */
export const earlyHints103 = toBytes('HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n')

/** A chunked answer with trailers, announced by a Trailer field. */
export function withTrailers (trailers: FieldList = [['X-Checksum', 'abc']], body = 'hello'): Buffer {
  const headers: FieldList = [['Transfer-Encoding', 'chunked'], ['Trailer', trailers.map(([name]) => name).join(', ')]]
  return Buffer.concat([answer({ headers, framing: 'none' }), chunk(body), lastChunk(trailers)])
}

/** A sound answer whose head is a little larger than `bytes`, in one field or in fields of 1000 bytes. */
export function hugeHead (bytes: number, oneField = true): Buffer {
  const headers: FieldList = oneField
    ? [['X-Huge', 'h'.repeat(bytes)]]
    : Array.from({ length: Math.ceil(bytes / 1000) }, (_, index) => [`X-Huge-${index}`, 'h'.repeat(1000)])
  return answer({ headers, body: 'hello' })
}

/**
 * Answers that are not HTTP, or lie about where they end. A proxy must refuse each of them (502) or cut its own answer, and
 * must never reuse the connection. All but `headCutShort` stand alone: the connection may stay open after them.
 */
export const invalidAnswers: Readonly<Record<string, Buffer>> = {
  notHttp: toBytes('SSH-2.0-OpenSSH_9.6\r\n\r\n'),
  noStatus: toBytes('HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi'),
  statusOfTwoDigits: toBytes('HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nhi'),
  statusOfLetters: toBytes('HTTP/1.1 abc OK\r\nContent-Length: 2\r\n\r\nhi'),
  status099: toBytes('HTTP/1.1 099 Low\r\nContent-Length: 2\r\n\r\nhi'),
  unknownVersion: toBytes('HTTP/9.9 200 OK\r\nContent-Length: 2\r\n\r\nhi'),
  spaceInFieldName: toBytes('HTTP/1.1 200 OK\r\nX Bad: 1\r\nContent-Length: 2\r\n\r\nhi'),
  nulInFieldValue: toBytes('HTTP/1.1 200 OK\r\nX-Bad: a\0b\r\nContent-Length: 2\r\n\r\nhi'),
  differentLengths: toBytes('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi!'),
  lengthOfLetters: toBytes('HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nhi'),
  negativeLength: toBytes('HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nhi'),
  lengthAndChunked: toBytes('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n'),
  codedInChunks: toBytes('HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n'),
  codedOnTwoLines: toBytes('HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n'),
  codedWithoutChunks: toBytes('HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhi'),
  unaskedSwitch: toBytes('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'),
  headCutShort: toBytes('HTTP/1.1 200 OK\r\nContent-Le')
}

/** Chunked bodies whose head and first chunk (`hello`) are sound and whose rest is not. */
export const invalidChunks: Readonly<Record<string, Buffer>> = Object.fromEntries(Object.entries({
  sizeOfLetters: 'zz\r\nhi\r\n0\r\n\r\n',
  negativeSize: '-2\r\nhi\r\n0\r\n\r\n',
  sizeTooSmall: '2\r\nhello\r\n0\r\n\r\n',
  hugeSize: 'ffffffffffffffffff\r\nhi\r\n'
}).map(([name, rest]) => [name, Buffer.concat([answer({ headers: [['Transfer-Encoding', 'chunked']], framing: 'none' }), chunk('hello'), toBytes(rest)])]))

/** Odd but legal, or commonly let pass: two equal Content-Length fields. */
export const equalLengths = toBytes('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi')
