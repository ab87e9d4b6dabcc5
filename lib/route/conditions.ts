import type { RouteOptions } from '../../config/schema.ts'
import { queryOf } from './query.ts'

/** Header fields as Node has them: names in lower case, several lines of one name joined. */
export type HeaderFields = Readonly<Record<string, string | string[] | undefined>>

/** The value of a field, or null where the request has none. */
export function fieldOf (headers: HeaderFields, name: string): string | null {
  const value = headers[name]
  if (typeof value === 'string') return value
  // Of "constructor" every object has something, and it is no field.
  return Array.isArray(value) ? value.join(', ') : null
}

const noFields: HeaderFields = Object.freeze({})

/** What of a request a route may ask for beside its path. One is used again for each request, so that matching allocates nothing. */
export class RequestFacts {
  readonly #queryNames: ReadonlySet<string>
  method = ''
  headers: HeaderFields = noFields
  #search = ''
  #query: Map<string, string> | null = null

  /** @param queryNames the parameters that any route asks for */
  constructor (queryNames: ReadonlySet<string>) {
    this.#queryNames = queryNames
  }

  begin (method: string, headers: HeaderFields, search: string): void {
    this.method = method
    this.headers = headers
    this.#search = search
    this.#query = null
  }

  /** Nothing of a request is kept. */
  end (): void {
    this.begin('', noFields, '')
  }

  header (name: string): string | null {
    return fieldOf(this.headers, name)
  }

  /** The query is read where the first route asks for it. */
  query (name: string): string | null {
    this.#query ??= queryOf(this.#search, this.#queryNames)
    return this.#query.get(name) ?? null
  }
}

/** What a request lacks. */
export interface Missing {
  readonly why: 'header' | 'query'
  readonly name: string
}

const any = '*'
const meets = (value: string | null, wanted: string): boolean => value !== null && (wanted === any || value === wanted)

/** What a route asks of header fields and query parameters; all of it must hold. */
export class Conditions {
  readonly #headers: ReadonlyArray<readonly [string, string]>
  readonly #query: ReadonlyArray<readonly [string, string]>
  /** How much it asks for: of two routes at one path the one that asks for more is tried first, */
  readonly count: number
  /** and then the one with more values in place of "*". */
  readonly exactCount: number

  private constructor (headers: ReadonlyArray<readonly [string, string]>, query: ReadonlyArray<readonly [string, string]>) {
    this.#headers = headers
    this.#query = query
    const all = [...headers, ...query]
    this.count = all.length
    this.exactCount = all.filter(([, value]) => value !== any).length
  }

  /** Null for a route that asks for neither. */
  static of ({ headers = {}, query = {} }: RouteOptions): Conditions | null {
    const fields = Object.entries(headers).map(([name, value]): [string, string] => [name.toLowerCase(), value])
    const parameters = Object.entries(query)
    return fields.length + parameters.length === 0 ? null : new Conditions(fields, parameters)
  }

  holds (facts: RequestFacts): boolean {
    for (const [name, value] of this.#headers) if (!meets(facts.header(name), value)) return false
    for (const [name, value] of this.#query) if (!meets(facts.query(name), value)) return false
    return true
  }

  /** The first thing that the request lacks, or null. */
  missing (facts: RequestFacts): Missing | null {
    for (const [name, value] of this.#headers) if (!meets(facts.header(name), value)) return { why: 'header', name }
    for (const [name, value] of this.#query) if (!meets(facts.query(name), value)) return { why: 'query', name }
    return null
  }
}
