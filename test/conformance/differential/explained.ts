import type { Difference, Kind } from './compare.ts'
import type { oddities } from './oddities.ts'

type Odd = keyof typeof oddities

export interface Explanation {
  readonly name: string
  readonly why: string
  readonly kinds: readonly Kind[]
  /** The oddities of which it holds; null: of every request. */
  readonly of: readonly Odd[] | null
  /** What the difference must be, beside its kind. */
  readonly when?: RegExp
}

/** Where Breakwater and nginx differ, and why that is right, or at least meant. docs/conformance.md has this table, too. */
export const explanations: readonly Explanation[] = [
  {
    name: 'kept behind a refusal',
    why: 'Both refuse; nginx closes the connection with every 400, Breakwater keeps it where it is certain where the next request begins.',
    kinds: ['connection'], of: null, when: /here (?:200|400|405), there none/
  },
  {
    name: 'other words for a refusal',
    why: 'Both refuse: transfer codings and versions are 400 here and 501 and 505 there, TRACE is 405 here.',
    kinds: ['other refusal'], of: ['a coding before chunked', 'a coding that is not chunked', 'an empty coding', 'chunked twice', 'another version', 'TRACE', 'two lines of chunked', 'a length and chunks']
  },
  {
    name: 'refused here, and there by the upstream',
    why: 'nginx passes it on and the upstream, which takes HTTP by the letter, breaks the connection: 502. Here the client is told what is wrong.',
    kinds: ['other refusal'], of: ['a control byte in a value', 'a name above ASCII', 'an odd character in a name'], when: /here 400, there 502/
  },
  {
    name: 'bare line feeds',
    why: 'RFC 9112 section 2.2 lets a recipient take a bare LF for a line end, and much of request smuggling lives of it. Here it is refused.',
    kinds: ['refused here'], of: ['a bare LF between fields', 'bare LFs at all lines', 'chunks with a bare LF behind the data', 'chunks with a bare LF behind the size', 'chunks with a bare LF in an extension', 'chunks with bare LFs']
  },
  {
    name: 'white space in a chunk\'s line',
    why: 'Spaces behind a chunk\'s size are "bad" white space that Node\'s parser refuses. No client is known to send it.',
    kinds: ['refused here'], of: ['chunks with a space before an extension', 'chunks with a space behind the size']
  },
  {
    name: 'paths that could escape',
    why: 'nginx resolves dot segments to choose a location and forwards what came. Here dot segments in any spelling, backslashes and fragments are refused before anything is routed.',
    kinds: ['refused here'], of: ['dot segments', 'a backslash', 'a fragment']
  },
  {
    name: 'escapes are not looked into',
    why: 'nginx refuses a path with %00. Here a well-formed escape passes as it came: the path is forwarded byte for byte.',
    kinds: ['refused there'], of: ['an escaped NUL']
  },
  {
    name: 'bytes that no target may have',
    why: 'RFC 9112 section 3.2: a target is ASCII. nginx lets other bytes pass.',
    kinds: ['refused here'], of: ['bytes above ASCII in the target', 'control bytes in the target']
  },
  {
    name: 'unknown methods',
    why: 'Node\'s parser knows the registered methods, and some more; any other is refused.',
    kinds: ['refused here'], of: ['an unknown method', 'a small method']
  },
  {
    name: 'later versions',
    why: 'nginx takes any HTTP/1.x for 1.1. Here a version is 1.0 or 1.1.',
    kinds: ['refused here'], of: ['another version']
  },
  {
    name: 'HTTP/0.9',
    why: 'nginx answers a request without version with a bare body. Here it is refused.',
    kinds: ['connection'], of: ['no version'], when: /here 400, there none/
  },
  {
    name: 'lines that are no fields',
    why: 'nginx passes over a header line without colon when it is told to keep unusual ones. Here it is refused.',
    kinds: ['refused here'], of: ['no colon', 'no name']
  },
  {
    name: 'hosts by the letter',
    why: 'RFC 3986 section 3.2.2 decides what a Host may be, an empty one included (RFC 9110 section 7.2). nginx has rules of its own: it takes bytes above ASCII, white space and user information, and refuses an empty one, two dots, and ports above 65535.',
    kinds: ['refused here', 'refused there'], of: ['a bad Host', 'a Host above ASCII', 'an empty Host', 'an unusual Host', 'an absolute target that is bad']
  },
  {
    name: 'the host of an absolute target',
    why: 'RFC 9112 section 3.2.2: it wins over the Host field. nginx was told to forward the field ($http_host) in these trials.',
    kinds: ['request'], of: ['an absolute target', 'an absolute target of another host', 'an absolute target that is bad'], when: /Host: here/
  },
  {
    name: 'OPTIONS *',
    why: 'RFC 9110 section 9.3.7: it is forwarded. nginx has no location for it.',
    kinds: ['refused there', 'request'], of: ['an asterisk', 'an absolute target'], when: /there 400|method: here OPTIONS|target: here \*/
  },
  {
    name: 'single fields that come twice',
    why: 'nginx refuses a second line of fields such as Authorization. Here both lines are forwarded, for the upstream to judge.',
    kinds: ['refused there'], of: ['a single field twice']
  },
  {
    name: 'hop-by-hop fields end here',
    why: 'RFC 9110 section 7.6.1: what Connection names is for this hop only, and so are Proxy-Connection and TE. nginx forwards all but Connection. Trailer goes with the trailers of requests, which are not forwarded.',
    kinds: ['request'], of: ['Connection that names a field', 'hop-by-hop fields', 'chunks with trailers', 'Upgrade'], when: /fields: only here \[\], only there \["(?:x-hop|x-same|proxy-connection|proxy-authorization|te|trailer|upgrade|keep-alive): /
  },
  {
    name: 'trailers are asked for',
    why: 'A client that says TE: trailers gets the trailers of answers: the upstream is told so. nginx drops both.',
    kinds: ['request'], of: ['hop-by-hop fields'], when: /only here \["te: trailers"\], only there \[\]/
  },
  {
    name: 'fields of proxies are ours',
    why: 'From an untrusted client they are dropped, also when they are spelt with underscores.',
    kinds: ['request'], of: ['fields of proxies'], when: /fields: only here \[\], only there \["x_forwarded_for: /
  },
  {
    name: 'Max-Forwards counts',
    why: 'RFC 9110 section 7.6.2: for OPTIONS it is counted down by one.',
    kinds: ['request'], of: ['Max-Forwards'], when: /max-forwards: 4.*max-forwards: 5/
  },
  {
    name: 'Expect is answered here',
    why: 'A proxy may answer 100 itself, and the expectation is then not forwarded. An unknown one may be ignored (RFC 9110 section 10.1.1).',
    kinds: ['request', 'refused there'], of: ['Expect: 100-continue', 'an unknown Expect'], when: /expect: |here 200, there 417/
  },
  {
    name: 'an upgrade that is not taken closes',
    why: 'Node\'s parser drops what it has in hand behind a request with Upgrade: where more came with it, the answer says that the connection closes.',
    kinds: ['connection'], of: ['Upgrade'], when: /here none, there/
  },
  {
    name: 'slow requests are told',
    why: 'A request that is not whole within its time gets 408; nginx just closes the connection.',
    kinds: ['connection'], of: ['a request that is not whole'], when: /here 408, there none/
  },
  {
    name: 'refused before it was whole',
    why: 'Both refuse. nginx had begun to forward, or says another status.',
    kinds: ['other refusal'], of: ['a length beyond all']
  }
]

/** The name of what explains a difference; null: nothing does. */
export function explanationOf ({ kind, what }: Difference, tags: readonly string[]): string | null {
  return explanations.find(({ kinds, of, when }) => kinds.includes(kind) && (of === null || of.some((tag) => tags.includes(tag))) && (when === undefined || when.test(what)))?.name ?? null
}
