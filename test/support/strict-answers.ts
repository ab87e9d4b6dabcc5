import { strictRequest } from './strict-http.ts'
import { valuesOf, type FieldList } from './http-bytes.ts'

export interface StrictAnswer {
  status: number
  headers: FieldList
  body: Buffer
  /** Statuses of the 1xx before it. */
  interim: number[]
}

export interface AnswersReading {
  answers: StrictAnswer[]
  /** '' where the bytes were whole answers and nothing else; else what was wrong with the next one. */
  rest: string
}

const statusLine = /^HTTP\/1\.[01] ([1-5][0-9]{2}) ?[\t\x20-\x7e\x80-\xff]*$/

/**
 * All answers that a connection gave, to the letter. A body that is framed by the connection's end takes all that is left.
 * @param methods of the requests, in order; answers beyond them are read like those to GET
 */
export function strictAnswers (bytes: Buffer, methods: readonly string[]): AnswersReading {
  const answers: StrictAnswer[] = []
  let interim: number[] = []
  for (let rest = bytes; rest.length > 0;) {
    const end = rest.indexOf('\r\n\r\n')
    if (end === -1) return { answers, rest: `a head without its end: ${JSON.stringify(rest.toString('latin1').slice(0, 200))}` }
    const [first = '', ...lines] = rest.toString('latin1', 0, end).split('\r\n')
    const status = Number(statusLine.exec(first)?.[1] ?? 0)
    if (status === 0) return { answers, rest: `no status line: ${JSON.stringify(first.slice(0, 200))}` }
    const headers = lines.map((line): [string, string] => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()])
    rest = rest.subarray(end + 4)
    if (status < 200 && status !== 101) {
      interim.push(status)
      continue
    }
    const body = bodyOf(rest, status, headers, methods[answers.length] ?? 'GET')
    if (typeof body === 'string') return { answers: [...answers, { status, headers, body: rest, interim }], rest: body }
    answers.push({ status, headers, body: body.body, interim })
    interim = []
    rest = rest.subarray(body.used)
  }
  return { answers, rest: interim.length === 0 ? '' : '1xx without an answer' }
}

function bodyOf (bytes: Buffer, status: number, headers: FieldList, method: string): { body: Buffer, used: number } | string {
  const lengths = valuesOf(headers, 'content-length')
  const codings = valuesOf(headers, 'transfer-encoding')
  if (lengths.length > 1 || (lengths.length === 1 && !/^\d+$/.test(lengths[0] as string))) return `Content-Length ${lengths.join(' and ')}`
  if (lengths.length === 1 && codings.length > 0) return 'Content-Length beside Transfer-Encoding'
  if (method === 'HEAD' || status === 204 || status === 304) return { body: Buffer.alloc(0), used: 0 }
  if (status === 101) return { body: bytes, used: bytes.length }
  if (codings.length > 0) return chunkedBody(bytes, codings.join(','))
  if (lengths.length === 0) return { body: bytes, used: bytes.length }
  const size = Number(lengths[0])
  return bytes.length < size ? `${bytes.length} of ${size} bytes` : { body: bytes.subarray(0, size), used: size }
}

/** Chunks are the same in both directions: they are read as those of a request. */
function chunkedBody (bytes: Buffer, coding: string): { body: Buffer, used: number } | string {
  const head = Buffer.from(`POST / HTTP/1.1\r\nTransfer-Encoding: ${coding}\r\n\r\n`)
  const step = strictRequest(Buffer.concat([head, bytes]))
  if (step.kind === 'request') return { body: step.request.body, used: step.used - head.length }
  return step.kind === 'more' ? 'chunks without their end' : step.what
}
