import type { OutgoingHttpHeaders } from 'node:http2'
import { isOfConnection, isSingle } from './single-fields.ts'

/** A request as undici's dispatchers take it. */
export interface RequestHeadParts {
  readonly method: string
  readonly path: string
  /** name, value, name, value, ... */
  readonly headers: readonly string[]
  /** The client takes trailers: `TE: trailers` is the one connection field that passes. */
  readonly trailers?: boolean
}

/**
 * The header list of a request. Several lines of one name stay in their order; cookies are joined, and so are fields of which Node
 * sends one line only.
 * @param scheme of the upstream's URL
 */
export function requestFields ({ method, path, headers, trailers = false }: RequestHeadParts, scheme: string, authority: string): OutgoingHttpHeaders {
  const fields: OutgoingHttpHeaders = Object.create(null) as OutgoingHttpHeaders
  fields[':method'] = method
  fields[':path'] = path
  fields[':scheme'] = scheme
  fields[':authority'] = authority
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = (headers[i] as string).toLowerCase()
    const value = headers[i + 1] as string
    if (name === 'host') fields[':authority'] = value
    // Host is `:authority`.
    if (name === 'host' || isOfConnection(name)) continue
    const before = fields[name]
    if (before === undefined) fields[name] = value
    else if (name === 'cookie') fields[name] = `${String(before)}; ${value}`
    else if (isSingle(name)) fields[name] = `${String(before)}, ${value}`
    else if (Array.isArray(before)) before.push(value)
    else fields[name] = [String(before), value]
  }
  if (trailers) fields['te'] = 'trailers'
  return fields
}
