/** Names of header fields in routes: those that a request is judged by, and those that are changed. */
import type { Report } from './checks.ts'
import { isOwnField } from './own-fields.ts'
import { indexPath, keyPath } from './path.ts'
import { given, listOf, objectOf } from './values.ts'

/** What the checks of a route's fields know of the rest of the configuration. */
export interface FieldNames {
  /** server.stripRequestHeaders, in lower case. */
  readonly stripped: ReadonlySet<string>
  /** server.requestIdHeader, in lower case. */
  readonly requestId: string
  /** server.tls.clientCertificates.header, in lower case; '' where clients show no certificates. */
  readonly certificate: string
}

export const fieldNames = (server: Record<string, unknown>): FieldNames => ({
  stripped: new Set(listOf(server['stripRequestHeaders']).filter(name => typeof name === 'string').map(name => name.toLowerCase())),
  requestId: lowerCase(server['requestIdHeader']),
  certificate: lowerCase(objectOf(objectOf(server['tls'])['clientCertificates'])['header'])
})

const lowerCase = (value: unknown): string => typeof value === 'string' ? value.toLowerCase() : ''

/** Of the fields that no option may give another meaning to, those that a client says and that may be read, replaced or taken out. */
const clientsOwn = new Set(['authorization', 'cookie', 'content-type'])
const isOurs = (name: string): boolean => isOwnField(name) && !clientsOwn.has(name.toLowerCase())

/** Judges the name of a field by which requests are told apart: what is read must be what the client may say. */
export const checkReadField = (name: unknown, path: string, names: FieldNames, report: Report): void => {
  if (typeof name !== 'string') return
  if (name.toLowerCase() === 'host') report(path, 'must not be Host; the option for that is host')
  else if (isOurs(name) || name.toLowerCase() === names.certificate) report(path, `must not be a field that the proxy itself writes or that frames the message, got ${given(name, '')}`)
  else if (names.stripped.has(name.toLowerCase())) report(path, `must not be one of server.stripRequestHeaders, which are never accepted from clients, got ${given(name, '')}`)
}

/** `by: header` and `by: cookie` want a name, and nothing else does. */
export const checkNamed = (section: Record<string, unknown>, path: string, names: FieldNames, report: Report): void => {
  const { by, name } = section
  const wants = by === 'header' || by === 'cookie'
  if (wants && name === undefined) report(keyPath(path, 'name'), `is required with by: ${by}`)
  if (!wants && typeof by === 'string' && name !== undefined) report(keyPath(path, 'name'), `is only for a header or cookie, and this is by: ${by}`)
  if (by === 'header') checkReadField(name, keyPath(path, 'name'), names, report)
}

/** Keys of a mapping that differ only in their case. */
const checkCase = (keys: readonly string[], path: string, report: Report): void => {
  for (const [index, key] of keys.entries()) {
    const first = keys.findIndex(other => other.toLowerCase() === key.toLowerCase())
    if (first < index) report(keyPath(path, key), `is the same field as ${keyPath(path, keys[first] as string)}`)
  }
}

// What Node's parser gives of a value: latin-1, without the white space around it.
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/

export const checkWantedFields = (headers: Record<string, unknown>, path: string, names: FieldNames, report: Report): void => {
  checkCase(Object.keys(headers), path, report)
  for (const [name, value] of Object.entries(headers)) {
    const at = keyPath(path, name)
    checkReadField(name, at, names, report)
    if (typeof value === 'string' && (!fieldValue.test(value) || value.trim() !== value)) {
      report(at, `must be a value that a field can have: of characters up to U+00FF, without white space around it, got ${given(value, at)}`)
    }
  }
}

const checkChanged = (name: string, path: string, names: FieldNames, report: Report): void => {
  if (name.toLowerCase() === 'host') report(path, 'must not be Host; the option for that is hostHeader of the pool')
  else if (isOurs(name) || [names.requestId, names.certificate].includes(name.toLowerCase())) report(path, `must not be a field that the proxy itself writes or that frames the message, got ${given(name, '')}`)
}

/**
 * Judges requestHeaders or responseHeaders of a route.
 * @param taken names that a pool of the route gives a meaning to, in lower case, with the path of the option that does
 */
export const checkChanges = (changes: Record<string, unknown>, path: string, names: FieldNames, taken: ReadonlyMap<string, string>, report: Report): void => {
  const set = Object.keys(objectOf(changes['set']))
  const setPath = keyPath(path, 'set')
  checkCase(set, setPath, report)
  for (const name of set) {
    checkChanged(name, keyPath(setPath, name), names, report)
    const option = taken.get(name.toLowerCase())
    if (option !== undefined) report(keyPath(setPath, name), `must not be the field of ${option}`)
  }
  const removed = listOf(changes['remove'])
  for (const [index, name] of removed.entries()) {
    if (typeof name !== 'string') continue
    const at = indexPath(keyPath(path, 'remove'), index)
    checkChanged(name, at, names, report)
    const same = (other: unknown): boolean => typeof other === 'string' && other.toLowerCase() === name.toLowerCase()
    const before = removed.findIndex(same)
    const twin = set.find(same)
    if (before < index) report(at, `is the same field as ${indexPath(keyPath(path, 'remove'), before)}: ${given(name, '')}`)
    else if (twin !== undefined) report(at, `is set already, which takes out what is there: ${keyPath(setPath, twin)}`)
  }
}
