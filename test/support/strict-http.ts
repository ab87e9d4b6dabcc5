import { toBytes, type FieldList } from './http-bytes.ts'

/**
 * HTTP/1.1 requests by the letter of RFC 9112, for judging what a proxy did with bytes: nothing is repaired and nothing guessed.
 * What RFC 9112 lets a server accept "nevertheless" (a bare LF, folded lines, a list of equal lengths) is a problem here.
 */
export interface StrictRequest {
  method: string
  target: string
  /** As in `HTTP/1.1`. */
  version: string
  headers: FieldList
  body: Buffer
  trailers: FieldList
  framing: 'none' | 'length' | 'chunked'
}

export type StrictStep =
  | { kind: 'request', request: StrictRequest, used: number }
  /** What is there may become a request. */
  | { kind: 'more' }
  /** No further bytes make a request of it. */
  | { kind: 'problem', what: string }

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const requestLine = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([\x21-\x7e\x80-\xff]+) (HTTP\/1\.[01])$/
// eslint-disable-next-line no-control-regex
const badValue = /[\x00-\x08\x0a-\x1f\x7f]/
const quoted = '"(?:[\\t \\x21\\x23-\\x5b\\x5d-\\x7e\\x80-\\xff]|\\\\[\\t \\x21-\\x7e\\x80-\\xff])*"'
const word = '[!#$%&\'*+\\-.^_`|~0-9A-Za-z]+'
const chunkLine = new RegExp(`^([0-9a-fA-F]{1,13})(?:[\\t ]*;[\\t ]*${word}(?:[\\t ]*=[\\t ]*(?:${word}|${quoted}))?)*$`)

const problem = (what: string): StrictStep => ({ kind: 'problem', what })

/** The first request of the bytes. @param line what its first line may be */
export function strictRequest (bytes: Buffer, line = requestLine): StrictStep {
  const end = bytes.indexOf('\r\n\r\n')
  const head = bytes.subarray(0, end === -1 ? bytes.length : end).toString('latin1')
  const lines = head.split('\r\n')
  // A line that is not whole yet cannot be judged.
  if (end === -1) lines.pop()
  if (end === -1 && lines.length === 0) return /^[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(head) || head === '' ? { kind: 'more' } : problem('no request line')
  const [first = '', ...fieldLines] = lines
  const [, method, target, version] = line.exec(first) ?? []
  if (method === undefined || target === undefined || version === undefined) return problem(`request line ${JSON.stringify(first)}`)
  const headers = fieldsOf(fieldLines)
  if (typeof headers === 'string') return problem(headers)
  if (end === -1) return { kind: 'more' }
  return withBody(bytes, end + 4, { method, target, version, headers })
}

/** The fields, or what is wrong with them. */
function fieldsOf (lines: readonly string[]): FieldList | string {
  const fields: FieldList = []
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(0, colon))
    const value = line.slice(colon + 1).replaceAll(/^[\t ]+|[\t ]+$/g, '')
    if (!token.test(name) || badValue.test(value)) return `field ${JSON.stringify(line.slice(0, 200))}`
    fields.push([name, value])
  }
  return fields
}

function withBody (bytes: Buffer, from: number, head: Omit<StrictRequest, 'body' | 'trailers' | 'framing'>): StrictStep {
  const named = (name: string): string[] => head.headers.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value)
  const lengths = named('content-length')
  const codings = named('transfer-encoding')
  if (codings.length > 0) {
    if (lengths.length > 0) return problem('Content-Length beside Transfer-Encoding')
    if (codings.length > 1 || codings[0]?.toLowerCase() !== 'chunked') return problem(`Transfer-Encoding ${JSON.stringify(codings)}`)
    if (head.version !== 'HTTP/1.1') return problem('Transfer-Encoding in HTTP/1.0')
    return chunked(bytes, from, head)
  }
  if (lengths.length > 1 || (lengths.length === 1 && !/^\d{1,15}$/.test(lengths[0] as string))) return problem(`Content-Length ${JSON.stringify(lengths)}`)
  const size = Number(lengths[0] ?? 0)
  if (bytes.length < from + size) return { kind: 'more' }
  return { kind: 'request', used: from + size, request: { ...head, body: bytes.subarray(from, from + size), trailers: [], framing: lengths.length === 0 ? 'none' : 'length' } }
}

function chunked (bytes: Buffer, from: number, head: Omit<StrictRequest, 'body' | 'trailers' | 'framing'>): StrictStep {
  const pieces: Buffer[] = []
  for (let at = from; ;) {
    const end = bytes.indexOf('\r\n', at)
    const line = bytes.subarray(at, end === -1 ? bytes.length : end).toString('latin1')
    if (end === -1) return line.length > 16384 ? problem('endless chunk size') : { kind: 'more' }
    const [, hex] = chunkLine.exec(line) ?? []
    if (hex === undefined) return problem(`chunk size ${JSON.stringify(line.slice(0, 200))}`)
    const size = Number.parseInt(hex, 16)
    at = end + 2
    if (size === 0) return trailersOf(bytes, at, head, pieces)
    if (bytes.length < at + size + 2) return bytes.length > at + size && bytes[at + size] !== 13 ? problem('chunk without its end') : { kind: 'more' }
    if (bytes.toString('latin1', at + size, at + size + 2) !== '\r\n') return problem('chunk without its end')
    pieces.push(bytes.subarray(at, at + size))
    at += size + 2
  }
}

function trailersOf (bytes: Buffer, from: number, head: Omit<StrictRequest, 'body' | 'trailers' | 'framing'>, pieces: Buffer[]): StrictStep {
  const lines: string[] = []
  for (let at = from; ;) {
    const end = bytes.indexOf('\r\n', at)
    if (end === -1) return { kind: 'more' }
    if (end === at) {
      const trailers = fieldsOf(lines)
      if (typeof trailers === 'string') return problem(`trailer ${trailers}`)
      return { kind: 'request', used: end + 2, request: { ...head, body: Buffer.concat(pieces), trailers, framing: 'chunked' } }
    }
    lines.push(bytes.toString('latin1', at, end))
    at = end + 2
  }
}

/** What a parser may take that the grammar has not. */
export const tolerances = {
  'line ends before a request': 'RFC 9112 section 2.2 asks servers to pass over an empty line there; Node\'s parser passes over a single CR or LF, too, as nginx does. Nothing of them is forwarded.',
  'several spaces in a request line': 'RFC 9112 section 3 allows to split the line at white space. What is forwarded has one space.'
} as const

export type Tolerance = keyof typeof tolerances

const looseLine = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+) +([\x21-\x7e\x80-\xff]+) +(HTTP\/1\.[01])$/

export interface StrictReading {
  requests: StrictRequest[]
  /** Why there are no more: a problem's words, `more` for a request that is not whole, '' where all bytes were used. */
  stopped: string
  /** What had to be tolerated; none unless it was asked for. */
  tolerated: Set<Tolerance>
}

/** All requests of a client's bytes, up to the first that is none. Empty lines before a request line are passed over (RFC 9112 section 2.2). */
export function strictRequests (data: Buffer | string, tolerant = false): StrictReading {
  let bytes = toBytes(data)
  const requests: StrictRequest[] = []
  const tolerated = new Set<Tolerance>()
  const skip = (): void => {
    while (bytes[0] === 13 && bytes[1] === 10) bytes = bytes.subarray(2)
    if (!tolerant) return
    for (; bytes[0] === 13 || bytes[0] === 10; bytes = bytes.subarray(1)) tolerated.add('line ends before a request')
  }
  for (;;) {
    skip()
    if (bytes.length === 0) return { requests, stopped: '', tolerated }
    let step = strictRequest(bytes)
    if (step.kind === 'problem' && tolerant) {
      step = strictRequest(bytes, looseLine)
      if (step.kind !== 'problem') tolerated.add('several spaces in a request line')
    }
    if (step.kind === 'more') return { requests, stopped: 'more', tolerated }
    if (step.kind === 'problem') return { requests, stopped: step.what, tolerated }
    requests.push(step.request)
    bytes = bytes.subarray(step.used)
  }
}
