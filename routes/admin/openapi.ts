/**
 * The admin routes as an OpenAPI 3.1 document, made of the schemas by which requests are judged. Those are JSON Schema 2020-12
 * already, which is what OpenAPI 3.1 takes: nothing is translated, only put in its place.
 */
import { createRequire } from 'node:module'
import type { RouteOptions } from 'fastify'
import * as named from './schemas.ts'

const { version, license } = createRequire(import.meta.url)('fastify-breakwater/package.json') as { version: string, license: string }

type Json = Record<string, unknown>

/** What a route says of itself, as define.ts has it. */
interface RouteSchema {
  summary?: string
  hide?: boolean
  /** Media types of a good answer; application/json where it is left out. */
  produces?: readonly string[]
  params?: Json
  querystring?: Json
  headers?: Json
  body?: Json
  response?: Record<string, Json>
}

/** Schemas with a name are told once, below `components`. */
const names = new Map<unknown, string>(Object.entries(named).map(([name, schema]) => [schema, name]))

/** The path as OpenAPI has it: `/pools/{pool}` for `/pools/:pool`. */
const pathOf = (url: string): string => url.replaceAll(/:(\w+)/g, '{$1}')

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)

/** `getBreakersPoolUpstream` for GET /breakers/:pool/:upstream. */
const operationIdOf = (method: string, url: string): string => method.toLowerCase() + url.split(/[^A-Za-z0-9]+/).map(capital).join('')

function parametersOf (schema: Json | undefined, where: 'path' | 'query' | 'header', shown: (schema: unknown) => unknown): Json[] {
  const required = (schema?.['required'] ?? []) as string[]
  return Object.entries((schema?.['properties'] ?? {}) as Record<string, Json>).map(([name, property]) => {
    const { description, ...rest } = property
    return { name, in: where, required: where === 'path' || (required.includes(name) && rest['default'] === undefined), ...description !== undefined && { description }, schema: shown(rest) }
  })
}

const emptyStatuses = new Set(['204', '304'])

class Document {
  readonly #components = new Map<string, unknown>()

  /** A copy in which named schemas are references; their text is kept. */
  readonly #shown = (schema: unknown): unknown => {
    const name = names.get(schema)
    if (name === undefined) return this.#copy(schema)
    if (!this.#components.has(name)) {
      this.#components.set(name, null)
      this.#components.set(name, this.#copy(schema))
    }
    return { $ref: `#/components/schemas/${name}` }
  }

  #copy (value: unknown): unknown {
    if (Array.isArray(value)) return value.map(this.#shown)
    return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, this.#shown(each)])) : value
  }

  #content (schema: unknown, types: readonly string[]): Json {
    // What is an object in JSON is read by people in another type.
    const isText = (type: string): boolean => type.startsWith('text/') && (schema as Json)['type'] !== 'string'
    return Object.fromEntries(types.map((type) => [type, { schema: isText(type) ? { type: 'string' } : this.#shown(schema) }]))
  }

  #responses (response: Record<string, Json>, produces: readonly string[]): Json {
    return Object.fromEntries(Object.entries(response).map(([status, schema]) => {
      const problem = /^[45]xx$|^503$/i.test(status)
      const description = (schema['description'] as string | undefined) ?? (problem ? 'Refused.' : 'Done.')
      const types = problem ? ['application/problem+json'] : status === '200' ? produces : ['application/json']
      // OpenAPI spells ranges in capitals.
      return [status.toUpperCase(), { description, ...!emptyStatuses.has(status) && { content: this.#content(schema, types) } }]
    }))
  }

  operation (method: string, url: string, schema: RouteSchema, free: boolean): Json {
    const { summary, params, querystring, headers, body, response, produces = ['application/json'] } = schema
    const parameters = [...parametersOf(params, 'path', this.#shown), ...parametersOf(querystring, 'query', this.#shown), ...parametersOf(headers, 'header', this.#shown)]
    return {
      operationId: operationIdOf(method, url),
      ...summary !== undefined && { summary },
      tags: [url.split('/')[1] || 'page'],
      ...parameters.length > 0 && { parameters },
      ...body !== undefined && { requestBody: { required: body['required'] !== undefined, content: this.#content(body, ['application/json']) } },
      responses: this.#responses(response ?? { 200: { description: 'Done.' } }, produces),
      ...free && { security: [] }
    }
  }

  components (): Json {
    return Object.fromEntries([...this.#components].toSorted(([a], [b]) => a < b ? -1 : 1))
  }
}

/** Paths that need no token. */
const probes = new Set(['/livez', '/readyz'])

/** A route as it was registered: path below the prefix, methods, schema. */
export type ShownRoute = Pick<RouteOptions, 'method' | 'schema'> & { url: string }

/** What only refuses is hidden, and HEAD goes with GET. */
function shownOf (routes: readonly ShownRoute[]): Array<[url: string, method: string, schema: RouteSchema]> {
  return routes.flatMap(({ url, method, schema = {} }) => (schema as RouteSchema).hide === true ? [] : [method].flat().filter((each) => each !== 'HEAD')
    .map((each): [string, string, RouteSchema] => [url, each, schema as RouteSchema]))
}

/**
 * The document.
 * @param prefix where the routes are registered; '' for the root
 */
export function openApiOf (routes: readonly ShownRoute[], prefix: string): Json {
  const document = new Document()
  const paths: Record<string, Json> = {}
  for (const [url, method, schema] of shownOf(routes)) {
    (paths[pathOf(url)] ??= {})[method.toLowerCase()] = document.operation(method, url, schema, probes.has(url))
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Breakwater admin routes',
      version,
      description: 'What the proxy believes and why, and the few things that an operator may do about it. Reads are GET; every write is a POST of JSON, and is journaled with its reason.',
      license: { name: license, identifier: license }
    },
    servers: [{ url: prefix === '' ? '/' : prefix }],
    // Without a token configured, only this machine is answered.
    security: [{ bearer: [] }, {}],
    paths: Object.fromEntries(Object.entries(paths).toSorted(([a], [b]) => a < b ? -1 : 1)),
    components: { schemas: document.components(), securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'The admin token, where one is configured.' } } }
  }
}
