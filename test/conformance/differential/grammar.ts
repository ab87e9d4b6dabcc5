/** Requests that are drawn at random: ordinary ones, with an oddity here and there. */
import type { Random } from '../../../lib/random.ts'
import { lastRequest } from '../talk.ts'
import { oddities, type Oddity } from './oddities.ts'

export interface Script {
  /** The bytes of one connection. */
  readonly bytes: string
  /** The names of the oddities that are in them. */
  readonly tags: readonly string[]
}

/** A request in its parts, before it is written down. */
export interface Draft {
  method: string
  target: string
  version: string
  host: string | null
  /** Whole lines. */
  fields: string[]
  /** Framing lines and the bytes of the body. */
  framing: string[]
  body: string
  lineEnd: string
  /** Before the request line. */
  before: string
  /** Between the words of the request line. */
  space: string
}

const pick = <T> (random: Random, list: readonly T[]): T => list[Math.floor(random() * list.length)] as T

const methods = ['GET', 'GET', 'GET', 'HEAD', 'POST', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const paths = ['/', '/a', '/a/b/c', '/a/', '/index.html', '/caf%C3%A9', '/a%20b', '/a;b=1', '/~user', '/a,b', '/a+b', '/a:b', '/a@b', '/a(b)', '/a\'b', '/$a&b', '/a=b', '/a!b', '/a*b']
const queries = ['', '', '', '?', '?a=1', '?a=1&b=2', '?q=%20x', '?a[]=1', '?/../x', '?a=b?c=d', '?a;b', '?%41', '?a=%', '?x=\'"']
const fields = [
  'Accept: */*', 'Accept-Language: de, en;q=0.5', 'Cookie: a=1; b=2', 'User-Agent: probe/1.0', 'Authorization: Basic YTpi', 'Range: bytes=0-9',
  'If-None-Match: "x"', 'Cache-Control: no-cache', 'X-Empty:', 'X-Spaces:   a  b  ', 'X-Latin: caf\xe9', 'x-lower: 1', 'X-UPPER: 1', 'X-Same: 1', 'X-Same: 2',
  'X-Quoted: "a, b"', 'Referer: http://shop/a?b', 'Accept-Encoding: gzip', 'Content-Type: text/plain', 'Origin: http://other', 'X-Colon: a:b:c', 'X.Dot: 1', 'X~Tilde: 1', 'X_Under: 1'
]
const bodies = ['', 'hello', 'x'.repeat(1000), 'GET /inner HTTP/1.1\r\nHost: shop\r\n\r\n', '\0\x01\xff', '0\r\n\r\n']

function chunks (random: Random, body: string): string {
  let text = ''
  for (let rest = body; rest !== '';) {
    const size = 1 + Math.floor(random() * rest.length)
    text += `${size.toString(16)}\r\n${rest.slice(0, size)}\r\n`
    rest = rest.slice(size)
  }
  return `${text}0\r\n\r\n`
}

function ordinary (random: Random, path: string): Draft {
  const method = pick(random, methods)
  const draft: Draft = {
    method, target: path + pick(random, queries), version: 'HTTP/1.1', host: 'Host: shop', fields: [], framing: [], body: '', lineEnd: '\r\n', before: '', space: ' '
  }
  for (let count = Math.floor(random() * 6); count > 0; count--) draft.fields.push(pick(random, fields))
  // Only this name's lines may repeat: which others may is a question of its own.
  draft.fields = draft.fields.filter((line, index, all) => line.startsWith('X-Same') || all.indexOf(line) === index)
  const withBody = random() < (['POST', 'PUT', 'PATCH'].includes(method) ? 0.9 : method === 'DELETE' ? 0.3 : 0)
  if (!withBody) return draft
  const body = pick(random, bodies)
  if (random() < 0.5) Object.assign(draft, { framing: [`Content-Length: ${body.length}`], body })
  else Object.assign(draft, { framing: ['Transfer-Encoding: chunked'], body: chunks(random, body) })
  return draft
}

function write (draft: Draft, random: Random): string {
  const { method, target, version, host, lineEnd, before, space, body } = draft
  const lines = [...draft.fields]
  for (const line of [...host === null ? [] : [host], ...draft.framing]) lines.splice(Math.floor(random() * (lines.length + 1)), 0, line)
  return `${before}${method}${space}${target}${version === '' ? '' : `${space}${version}`}${lineEnd}${lines.map((line) => line + lineEnd).join('')}${lineEnd}${body}`
}

/** One to three requests on a connection, at most one of them with an oddity; three in ten have none. */
export function draw (random: Random): Script {
  // Each has a path of its own, so that it is known when it arrives.
  const first = Math.floor(random() * paths.length)
  const drafts = Array.from({ length: pick(random, [1, 1, 2, 3]) }, (_, i) => ordinary(random, paths[(first + i) % paths.length] as string))
  const tags: string[] = []
  if (random() > 0.3) {
    const [name, apply] = pick(random, Object.entries(oddities) as Array<[string, Oddity]>)
    apply(pick(random, drafts), random)
    tags.push(name)
  }
  return { bytes: drafts.map((draft) => write(draft, random)).join('') + lastRequest, tags }
}
