import { isAuthority } from './target.ts'

/** What a proxy in front may have said about the client; believed only where the peer is trusted. */
export interface GivenFields {
  forwardedFor: string
  forwardedProto: string
  forwardedHost: string
  forwardedPort: string
  forwardedPrefix: string
  forwarded: string
  via: string
  requestId: string
}

/** A request's head, sorted into what is forwarded as it came and what the proxy decides itself. */
export interface RequestHead {
  /** name, value, name, value, ... of the fields that pass, in their order and spelling. */
  fields: string[]
  host: string
  /** Bytes of the body; -1 where chunks will tell; 0 for none. */
  contentLength: number
  given: GivenFields
}

const pass = 0
const drop = 1
const connection = 2
const host = 3
const contentLength = 4
const transferEncoding = 5
const maxForwards = 6
const forwardedFor = 7
const forwardedProto = 8
const forwardedHost = 9
const forwardedPort = 10
const forwardedPrefix = 11
const forwarded = 12
const via = 13
const requestId = 14

/** Hop-by-hop (RFC 9110 section 7.6.1), what undici refuses, and what only the proxy itself may say. */
const fixedKinds: Readonly<Record<string, number>> = {
  'connection': connection,
  'host': host,
  'content-length': contentLength,
  'transfer-encoding': transferEncoding,
  'max-forwards': maxForwards,
  'keep-alive': drop,
  'proxy-connection': drop,
  'proxy-authorization': drop,
  'proxy-authenticate': drop,
  'te': drop,
  'trailer': drop,
  'upgrade': drop,
  'expect': drop,
  'http2-settings': drop,
  'x-real-ip': drop,
  'x-forwarded-for': forwardedFor,
  'x-forwarded-proto': forwardedProto,
  'x-forwarded-host': forwardedHost,
  'x-forwarded-port': forwardedPort,
  'x-forwarded-prefix': forwardedPrefix,
  'forwarded': forwarded,
  'via': via
}

/** Fields that a Connection line cannot take away: they carry the message itself. */
const neverNominated = new Set(['host', 'content-length', 'transfer-encoding', 'content-type', 'content-encoding', 'authorization', 'cookie'])

// What the memory of names may take: a client that makes names up gains nothing by it.
const maxKnownNames = 512
const maxKnownName = 64

const noFields: GivenFields = Object.freeze({
  forwardedFor: '', forwardedProto: '', forwardedHost: '', forwardedPort: '', forwardedPrefix: '', forwarded: '', via: '', requestId: ''
})

/**
 * Reads request heads as Node's parser left them (`rawHeaders`), in one pass. Which names it takes out depends on the
 * configuration, so there is one reader for each.
 */
export class RequestHeadReader {
  readonly #kinds = new Map<string, number>()
  readonly #byName: Map<string, number>

  /**
   * @param strip names never accepted from clients, lower-case
   * @param requestIdHeader the field that carries the request id, lower-case
   * Throws a RangeError for a name without which no request can be framed or routed.
   */
  constructor (strip: readonly string[], requestIdHeader: string) {
    this.#byName = new Map(Object.entries(fixedKinds))
    this.#set(requestIdHeader, requestId)
    for (const name of strip) {
      // Of "x_user_id" the twin is the usual spelling: a CGI-like server cannot tell the two apart.
      const twin = name.replaceAll('_', '-')
      if (!this.#byName.has(twin) && !neverNominated.has(twin)) this.#byName.set(twin, drop)
      this.#set(name, drop)
    }
  }

  #set (name: string, kind: number): void {
    const fixed = this.#byName.get(name) ?? pass
    if (fixed >= connection && fixed <= transferEncoding) throw new RangeError(`"${name}" must stay what it is: HTTP itself needs it`)
    this.#byName.set(name, kind)
  }

  /**
   * Returns null for a head that must be refused with 400: two Host lines, a Host that is none, a Content-Length beyond the safe
   * integers (2^53 - 1), a transfer coding that we cannot pass on, and for OPTIONS a bad or second Max-Forwards. For OPTIONS that field is counted down by one (RFC 9110 section 7.6.2),
   * for other methods it is a field like any.
   */
  read (rawHeaders: readonly string[], method: string): RequestHead | null {
    const fields: string[] = []
    let given: GivenFields = noFields
    let nominated: string | null = null
    let hostValue: string | null = null
    let length = 0
    let hops = -1
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const name = rawHeaders[i] as string
      const value = rawHeaders[i + 1] as string
      const kind = this.#kindOf(name)
      if (kind === pass) {
        fields.push(name, value)
        continue
      }
      switch (kind) {
        case drop: break
        case host:
          if (hostValue !== null || (value !== '' && !isAuthority(value))) return null
          hostValue = value
          break
        case contentLength:
          // Beyond them it would be another number that is forwarded.
          if (!Number.isSafeInteger(Number(value))) return null
          if (length === 0) length = Number(value)
          break
        case transferEncoding:
          // Any other coding would be lost: the field is the connection's, and ours to the upstream says only "chunked".
          if (length === -1 || value.toLowerCase() !== 'chunked') return null
          length = -1
          break
        case connection:
          if (value !== 'keep-alive' && value !== 'close') nominated = nominated === null ? value : `${nominated},${value}`
          break
        case maxForwards:
          if (method !== 'OPTIONS') {
            fields.push(name, value)
            break
          }
          if (hops !== -1 || !/^\d{1,9}$/.test(value)) return null
          hops = Number(value)
          fields.push(name, String(Math.max(0, hops - 1)))
          break
        default:
          if (given === noFields) given = { ...noFields }
          keep(given, kind, value)
      }
    }
    if (nominated !== null) removeNominated(fields, nominated)
    return { fields, host: hostValue ?? '', contentLength: length, given }
  }

  /** Whether a field of this name passes as it came: it is neither ours to say nor never accepted. */
  passes (name: string): boolean { return this.#kindOf(name) === pass }

  #kindOf (name: string): number {
    const known = this.#kinds.get(name)
    if (known !== undefined) return known
    // The underscore twin of a field that we own would arrive at a CGI-like server as the field itself.
    const lower = name.toLowerCase()
    const twin = lower.includes('_') ? this.#byName.get(lower.replaceAll('_', '-')) : undefined
    const kind = this.#byName.get(lower) ?? (twin === undefined ? pass : drop)
    if (this.#kinds.size < maxKnownNames && name.length <= maxKnownName) this.#kinds.set(name, kind)
    return kind
  }
}

function keep (given: GivenFields, kind: number, value: string): void {
  switch (kind) {
    case forwardedFor: given.forwardedFor = joined(given.forwardedFor, value); break
    case forwarded: given.forwarded = joined(given.forwarded, value); break
    case via: given.via = joined(given.via, value); break
    case forwardedProto: given.forwardedProto = value; break
    case forwardedHost: given.forwardedHost = value; break
    case forwardedPort: given.forwardedPort = value; break
    case forwardedPrefix: given.forwardedPrefix = value; break
    case requestId: given.requestId = value; break
  }
}

const joined = (before: string, value: string): string => before === '' ? value : `${before}, ${value}`

/** Takes out what the client's Connection line names, before anything of ours is added: it cannot reach our own fields. */
function removeNominated (fields: string[], nominated: string): void {
  const names = new Set<string>()
  for (const token of nominated.split(',')) {
    const name = token.trim().toLowerCase()
    if (name !== '' && !neverNominated.has(name)) names.add(name)
  }
  if (names.size === 0) return
  let kept = 0
  for (let i = 0; i < fields.length; i += 2) {
    if (names.has((fields[i] as string).toLowerCase())) continue
    fields[kept++] = fields[i] as string
    fields[kept++] = fields[i + 1] as string
  }
  fields.length = kept
}
