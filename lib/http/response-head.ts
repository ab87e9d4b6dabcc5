import { extendVia, type ReceivedVersion } from './forwarded.ts'

/** Fields of an answer, lower-case; several lines of one name as an array in their order. */
export type ResponseFields = Record<string, string | string[]>

/** Hop-by-hop fields of an answer; Trailer too, as Node throws on it where the body turns out to have a length. */
const hopByHop = new Set(['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'te', 'trailer', 'transfer-encoding', 'upgrade'])

const plainConnection = /^(?:keep-alive|close)$/i

/** What a Connection line of the upstream cannot take away. */
const neverNominated = new Set(['content-length', 'content-type', 'content-encoding', 'set-cookie', 'date', 'via'])

/** An object without inherited names that V8 still keeps in its fast form, which it does not for a literal with a null prototype. */
const Fields = function () {} as unknown as new () => ResponseFields
Fields.prototype = Object.create(null)

const transferEncoding = 'transfer-encoding'

/**
 * True for a body in a transfer coding other than chunked: undici takes only that one off, and with the field, which is
 * hop-by-hop, the only word of the other codings would go.
 */
export function isTransferCoded (rawFields: readonly Buffer[], nameOf: (name: Buffer) => string): boolean {
  for (let i = 0; i + 1 < rawFields.length; i += 2) {
    const name = rawFields[i] as Buffer
    if (name.length !== transferEncoding.length || nameOf(name) !== transferEncoding) continue
    if ((rawFields[i + 1] as Buffer).toString('latin1').trim().toLowerCase() !== 'chunked') return true
  }
  return false
}

/**
 * The end-to-end fields of an upstream's answer.
 * @param rawFields name, value, name, value, ... as the parser read them
 * @param nameOf decodes a name to lower case; values are latin-1, as they came
 * @param version what the upstream speaks
 */
export function responseFields (rawFields: readonly Buffer[], nameOf: (name: Buffer) => string, version: ReceivedVersion = '1.1'): ResponseFields {
  const fields: ResponseFields = new Fields()
  let nominated: string | null = null
  for (let i = 0; i + 1 < rawFields.length; i += 2) {
    const name = nameOf(rawFields[i] as Buffer)
    const value = (rawFields[i + 1] as Buffer).toString('latin1')
    if (hopByHop.has(name)) {
      if (name === 'connection' && !plainConnection.test(value)) nominated = nominated === null ? value : `${nominated},${value}`
      continue
    }
    const before = fields[name]
    if (before === undefined) fields[name] = value
    else if (typeof before === 'string') fields[name] = [before, value]
    else before.push(value)
  }
  if (nominated !== null) removeNominated(fields, nominated)
  const via = fields['via']
  fields['via'] = extendVia(typeof via === 'object' ? via.join(', ') : via, version)
  return fields
}

/** The names that the Connection lines of an answer have, lower-case. */
export function nominatedNames (rawFields: readonly Buffer[], nameOf: (name: Buffer) => string): Set<string> {
  const names = new Set<string>()
  for (let i = 0; i + 1 < rawFields.length; i += 2) {
    if (nameOf(rawFields[i] as Buffer) !== 'connection') continue
    for (const token of (rawFields[i + 1] as Buffer).toString('latin1').split(',')) names.add(token.trim().toLowerCase())
  }
  return names
}

function removeNominated (fields: ResponseFields, nominated: string): void {
  for (const token of nominated.split(',')) {
    const name = token.trim().toLowerCase()
    if (!neverNominated.has(name) && fields[name] !== undefined) delete fields[name]
  }
}
