import { redacted } from './redact.ts'
import type { RouteOptions } from './schema.ts'
import { isSecretName } from './secrets.ts'

/** What a request must look like for a route to be the one: two routes that agree in this are one. */
export type RouteMatching = Pick<RouteOptions, 'host' | 'path' | 'methods' | 'headers' | 'query'>

const sorted = (record: Record<string, string> = {}, nameOf = (name: string) => name): [string, string][] =>
  Object.entries(record).map(([name, value]): [string, string] => [nameOf(name), value]).toSorted(([a], [b]) => a < b ? -1 : 1)

/** The same text for two routes that match the same requests by the same words; holds whatever secrets the route does. */
export const routeKey = ({ host = '', path, methods = [], headers, query }: RouteMatching): string =>
  JSON.stringify([host.toLowerCase(), path, methods.toSorted(), sorted(headers, name => name.toLowerCase()), sorted(query)])

const constraints = (noun: string, record: Record<string, string> | undefined): string[] =>
  sorted(record).map(([name, value]) => value === '*' ? `${noun} ${name}` : `${noun} ${name}=${isSecretName(name) ? redacted : value}`)

/** A route as people call it, like `GET,POST shop.example.com/api/* (header x-version=2)`; without secrets. */
export const routeLabel = ({ host = '', path, methods, headers, query }: RouteMatching): string => {
  const wanted = [...constraints('header', headers), ...constraints('query', query)]
  return `${methods === undefined ? '' : `${methods.join(',')} `}${host.toLowerCase()}${path}${wanted.length === 0 ? '' : ` (${wanted.join(', ')})`}`
}
