import type { RouteOptions } from '../../config/schema.ts'
import type { ResponseFields } from '../http/response-head.ts'

type Changes = NonNullable<RouteOptions['requestHeaders']>

/** Changes the fields of a request in place: name, value, name, value, ... */
export type RequestChange = (fields: string[]) => void
/** Changes the fields of an answer in place; their names are in lower case. */
export type ResponseChange = (fields: ResponseFields) => void

/** Of "x_user_id" the twin is the usual spelling: a CGI-like server cannot tell the two apart. */
const twinOf = (name: string): string => {
  const lower = name.toLowerCase()
  return lower.includes('_') ? lower.replaceAll('_', '-') : lower
}

/** Null where there is nothing to do. A field that is set is sent once, whatever the client sent by that name or its twin with "_". */
export function requestChange (changes: Changes | undefined): RequestChange | null {
  const set = Object.entries(changes?.set ?? {}).flat()
  const taken = new Set([...Object.keys(changes?.set ?? {}), ...changes?.remove ?? []].map(twinOf))
  if (taken.size === 0) return null
  return (fields) => {
    let kept = 0
    for (let i = 0; i < fields.length; i += 2) {
      const name = fields[i] as string
      if (taken.has(twinOf(name))) continue
      fields[kept++] = name
      fields[kept++] = fields[i + 1] as string
    }
    fields.length = kept
    for (const text of set) fields.push(text)
  }
}

/** Null where there is nothing to do. */
export function responseChange (changes: Changes | undefined): ResponseChange | null {
  const set = Object.entries(changes?.set ?? {}).map(([name, value]): [string, string] => [name.toLowerCase(), value])
  const removed = (changes?.remove ?? []).map((name) => name.toLowerCase())
  if (set.length + removed.length === 0) return null
  return (fields) => {
    // Deleting what is not there would cost the object its fast form.
    for (const name of removed) if (fields[name] !== undefined) delete fields[name]
    for (const [name, value] of set) fields[name] = value
  }
}
