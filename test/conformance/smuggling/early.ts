/**
 * Answers that come before the body has: Kettle's early-response gadgets and 0.CL, HTTP/1.1 Must Die (2025). Whoever answers early
 * (the upstream, a refusal, a probe) still has the rest of a body before him, which is nobody's request: neither on the client's connection nor
 * on the one to the upstream.
 */
import { answer } from '../../support/faulty-upstream.ts'
import type { Reply } from '../../support/recorder.ts'
import { smuggled } from './framing.ts'

/** The first request of a connection in two parts: the second is sent once something was answered to the first, or nothing is for a while. */
export interface EarlyCase {
  readonly name: string
  readonly head: string
  readonly rest: string
}

/** Who answers, by the path. The upstream answers each request as soon as it has its head, but for those below /late. */
const answerers: Record<string, string> = {
  'the upstream': '/first',
  'an upstream that waits': '/late',
  'a redirect of the upstream': '/302',
  'an upstream with 204': '/204',
  'an upstream with 304': '/304',
  'an upstream that says 100 and then more': '/100',
  'an upstream that closes': '/close',
  'no route': '/nowhere',
  'a route that is switched off': '/off',
  'a limit of the rate': '/limited',
  'a limit of the body': '/small',
  'a probe': '/livez',
  'a refused target': '/a/../b'
}

/** What a client says before a body that it holds back, or not. */
const expects: Record<string, string> = {
  'no Expect': '',
  'Expect': 'Expect: 100-continue\r\n',
  'Expect with a tail': 'Expect: 100-continue, y\r\n',
  'Expect in quotes': 'Expect: "100-continue"\r\n',
  'Expect behind another': 'Expect: y\r\nExpect: 100-continue\r\n',
  'Expect of nothing': 'Expect:\r\n',
  'Expect of something else': 'Expect: 200-ok\r\n'
}

/** How the body is announced, how it goes on, and how much of it comes with the head. */
const bodies: Record<string, readonly [field: string, begin: string, rest: string]> = {
  'a length': [`Content-Length: ${smuggled.length}`, '', smuggled],
  'a length, one byte at once': [`Content-Length: ${smuggled.length + 1}`, 'x', smuggled],
  'chunks': ['Transfer-Encoding: chunked', '', `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`],
  'chunks, one at once': ['Transfer-Encoding: chunked', '1\r\nx\r\n', `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`]
}

const methodsOf = (path: string): string[] => ['GET', path === '/livez' ? 'HEAD' : 'POST']

export const earlyCases: readonly EarlyCase[] = Object.entries(answerers).flatMap(([who, path]) => methodsOf(path).flatMap((method) =>
  Object.entries(expects).flatMap(([expect, field]) => Object.entries(bodies).map(([body, [framing, begin, rest]]): EarlyCase => ({
    name: `early: ${who}, ${method}, ${expect}, ${body}`,
    head: `${method} ${path} HTTP/1.1\r\nHost: shop\r\n${field}${framing}\r\n\r\n${begin}`,
    rest
  })))))

/** What the gateway is told, so that each of them answers. */
export const earlyRoutes = [
  { path: '/off', disabled: {} },
  { path: '/limited', pool: 'shop', rateLimit: { max: 1, windowMs: 86_400_000 } },
  { path: '/small', pool: 'shop', maxBodyBytes: 1 },
  ...['/first', '/late', '/302', '/204', '/304', '/100', '/close', '/victim', '/end', '/smuggled'].map((path) => ({ path, pool: 'shop' }))
]

/** What the upstream says to a head, whatever is still to come; null: nothing yet. */
export function earlyReply (target: string): Reply {
  switch (target) {
    case '/302': return answer({ status: 302, headers: [['Location', '/elsewhere']], body: 'elsewhere' })
    case '/204':
    case '/304': return Buffer.from(`HTTP/1.1 ${target.slice(1)} Early\r\n\r\n`)
    case '/100': return Buffer.concat([Buffer.from('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n'), answer({ body: target })])
    case '/close': return { bytes: answer({ headers: [['Connection', 'close']], body: target }), close: true }
    case '/first': return answer({ body: target })
    default: return null
  }
}
