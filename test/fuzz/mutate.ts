import type { Random } from '../../lib/random.ts'

export const below = (random: Random, limit: number): number => Math.floor(random() * limit)
export const oneOf = <T> (random: Random, list: readonly T[]): T => list[below(random, list.length)] as T

/** Bytes that parsers care about. */
const tokens = [
  '\r\n', '\n', '\r', '\r\n\r\n', '\0', ' ', '\t', ':', ': ', ';', ',', '"', '=', '%', '%0d%0a', '/', '..', '\x7f', '\x80', '\xff', '0', '1', 'ffffffff', '0\r\n\r\n', '-1', '+5', '0x5',
  'HTTP/1.1', 'HTTP/1.0', 'GET ', 'POST ', 'HEAD ', 'Host: shop\r\n', 'Content-Length: 0\r\n', 'Content-Length: 5\r\n', 'Content-Length: 4294967301\r\n', 'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding: ', 'Connection: close\r\n', 'Connection: keep-alive\r\n', 'Connection: upgrade\r\n', 'Upgrade: websocket\r\n', 'Expect: 100-continue\r\n', 'Trailer: X-T\r\n', 'TE: trailers\r\n',
  'GET /smuggled HTTP/1.1\r\nHost: shop\r\n\r\n', '5\r\nhello\r\n', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'PROXY TCP4 1.2.3.4 5.6.7.8 9 10\r\n'
].map((text) => Buffer.from(text, 'latin1'))

type Mutation = (bytes: Buffer, random: Random) => Buffer

const mutations: readonly Mutation[] = [
  // A bit, a byte.
  (bytes, random) => { const copy = Buffer.from(bytes); const at = below(random, copy.length); copy[at] = (copy[at] as number) ^ (1 << below(random, 8)); return copy },
  (bytes, random) => { const copy = Buffer.from(bytes); copy[below(random, copy.length)] = below(random, 256); return copy },
  // A token put in, or in the place of as many bytes.
  (bytes, random) => { const at = below(random, bytes.length + 1); return Buffer.concat([bytes.subarray(0, at), oneOf(random, tokens), bytes.subarray(at)]) },
  (bytes, random) => { const at = below(random, bytes.length + 1); const token = oneOf(random, tokens); return Buffer.concat([bytes.subarray(0, at), token, bytes.subarray(at + token.length)]) },
  // A stretch taken out, doubled, or moved.
  (bytes, random) => { const [from, to] = stretch(bytes, random); return Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)]) },
  (bytes, random) => { const [from, to] = stretch(bytes, random); return Buffer.concat([bytes.subarray(0, to), bytes.subarray(from)]) },
  (bytes, random) => {
    const [from, to] = stretch(bytes, random)
    const rest = Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)])
    const at = below(random, rest.length + 1)
    return Buffer.concat([rest.subarray(0, at), bytes.subarray(from, to), rest.subarray(at)])
  },
  // The end cut off.
  (bytes, random) => bytes.subarray(0, below(random, bytes.length + 1)),
  // A number made another one.
  (bytes, random) => {
    const text = bytes.toString('latin1')
    const numbers = [...text.matchAll(/\d+/g)]
    if (numbers.length === 0) return bytes
    const { 0: number, index } = oneOf(random, numbers)
    return Buffer.from(text.slice(0, index) + oneOf(random, ['0', '1', String(Number(number) + 1), String(Number(number) - 1), '99999999999999999999', '2147483648', '']) + text.slice(index + number.length), 'latin1')
  }
]

function stretch (bytes: Buffer, random: Random): [from: number, to: number] {
  const from = below(random, bytes.length + 1)
  return [from, Math.min(bytes.length, from + 1 + below(random, 40))]
}

/** The bytes with up to so many changes; never empty unless they were. */
export function mutate (bytes: Buffer, random: Random, most: number): Buffer {
  let changed = bytes
  for (let count = below(random, most + 1); count > 0; count--) {
    const next = oneOf(random, mutations)(changed, random)
    if (next.length > 0) changed = next
  }
  return changed
}

/** The bytes in up to four pieces. */
export function pieces (bytes: Buffer, random: Random): Buffer[] {
  const cuts = Array.from({ length: below(random, 4) }, () => below(random, bytes.length + 1)).toSorted((a, b) => a - b)
  return [...cuts, bytes.length].map((to, i) => bytes.subarray(cuts[i - 1] ?? 0, to)).filter(({ length }) => length > 0)
}
