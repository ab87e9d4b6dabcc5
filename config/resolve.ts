import { type JsonSchema, schemaOfKey } from './describe.ts'
import { maxProblems, type Problem } from './error.ts'
import { indexPath, keyPath } from './path.ts'
import { isObject } from './values.ts'

export type Env = Readonly<Record<string, string | undefined>>

/** A plain copy of an input, with variables put in. */
export interface Resolved {
  value: unknown
  /** Path of a value -> the variable its text came from. */
  origins: ReadonlyMap<string, string>
  problems: Problem[]
}

/** Far above any real configuration; aliases and cycles end here. */
const maxDepth = 32
const maxValues = 100000

/** Names that would reach into prototypes when a consumer uses them as keys. */
const forbidden = new Set(['__proto__', 'constructor', 'prototype'])

/** `$${` | `${NAME}` | `${NAME:-default}` | any other `${`, which is an error. */
const reference = /\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|)/g
const whole = /^\$\{[^}]*\}$/

const numeric = /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i

/** Text from a variable, as the type that the option wants; text that does not fit stays text, and the schema says what is wrong with it. */
const convert = (text: string, schema: JsonSchema | undefined): unknown => {
  const options = schema?.anyOf ?? (schema === undefined ? [] : [schema])
  const trimmed = text.trim()
  if (options.some(option => option.const === text)) return text
  if (options.some(({ type }) => type === 'integer' || type === 'number') && numeric.test(trimmed)) return Number(trimmed)
  if (options.some(({ type }) => type === 'boolean') && /^(true|false)$/i.test(trimmed)) return trimmed.toLowerCase() === 'true'
  return text
}

/** A mapping that means the same empty as left out. One with defaults of its own counts by being there, like a route's `disabled`. */
const meansNothing = ({ properties, required = [] }: JsonSchema): boolean =>
  properties !== undefined && Object.entries(properties).every(([key, { default: value }]) =>
    value === undefined ? !required.includes(key) : value === false || (typeof value === 'object' && value !== null && Object.keys(value).length === 0))

/** A section or list that may be left out, left empty as YAML allows: `routes:` without anything after it. */
const leftOut = (value: unknown, parent: JsonSchema | undefined, key: string): boolean => {
  if (value !== null) return value === undefined
  const schema = parent?.properties?.[key]
  if (schema === undefined) return false
  return typeof schema.default === 'object' || (parent?.required?.includes(key) !== true && meansNothing(schema))
}

const kind = (value: unknown): string => {
  if (value === undefined || value === null) return 'nothing'
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`
}

/** The value is to be left out, as a problem was reported for it. */
const nothing = Symbol('nothing')

class Resolver {
  readonly problems: Problem[] = []
  readonly origins = new Map<string, string>()
  readonly #env: Env | null
  #values = 0

  constructor (env: Env | null) {
    this.#env = env
  }

  copy (value: unknown, schema: JsonSchema | undefined, path: string, depth: number): unknown {
    if (++this.#values > maxValues) return this.#values === maxValues + 1 ? this.#problem('', `must hold at most ${maxValues} values, got more`) : nothing
    if (typeof value === 'string') return this.#env === null ? value : this.#expand(value, this.#env, schema, path)
    if (value === null || typeof value === 'boolean' || typeof value === 'number') return value
    if (typeof value !== 'object') return this.#problem(path, `must be plain data, got ${kind(value)}`)
    if (depth > maxDepth) return this.#problem(path, `must be nested at most ${maxDepth} deep, got more`)
    if (Array.isArray(value)) return this.#list(value, schema?.items, path, depth)
    const prototype: unknown = Object.getPrototypeOf(value)
    // Plain objects of another realm (a vm, a worker) have another Object.prototype, itself without a prototype.
    if (prototype !== null && Object.getPrototypeOf(prototype) !== null) return this.#problem(path, 'must be plain data, got an instance of a class')
    return this.#mapping(value, schema, path, depth)
  }

  #mapping (value: object, schema: JsonSchema | undefined, path: string, depth: number) {
    const copy: Record<string, unknown> = {}
    for (const [key, member] of Object.entries(value)) {
      const memberPath = keyPath(path, key)
      if (this.#values > maxValues) break
      if (forbidden.has(key)) {
        this.#problem(memberPath, 'is a name that is never allowed')
        continue
      }
      const memberSchema = schemaOfKey(schema, key)
      if (leftOut(member, schema, key)) continue
      const copied = this.copy(member, memberSchema, memberPath, depth + 1)
      if (copied !== nothing) copy[key] = copied
    }
    return copy
  }

  #list (value: unknown[], schema: JsonSchema | undefined, path: string, depth: number) {
    const copy: unknown[] = []
    for (let index = 0; index < value.length && this.#values <= maxValues; index++) {
      const copied = this.copy(value[index], schema, indexPath(path, index), depth + 1)
      // An element keeps its place, so that the paths of the later ones stay right.
      copy.push(copied === nothing ? null : copied)
    }
    return copy
  }

  #expand (text: string, env: Env, schema: JsonSchema | undefined, path: string): unknown {
    const names: string[] = []
    let failed = false
    const expanded = text.replace(reference, (match: string, name: string | undefined, fallback: string | undefined) => {
      if (match === '$${') return '${'
      if (name === undefined) {
        failed = true
        this.#problem(path, 'has a "${" that is not ${NAME} or ${NAME:-default}; a plain one is written "$${"')
        return ''
      }
      names.push(name)
      const found = env[name] ?? ''
      if (found !== '') return found
      if (fallback !== undefined) return fallback
      failed = true
      this.#problem(path, `needs the variable ${name}, which is ${env[name] === undefined ? `not set; \${${name}:-default} would give it a default` : 'empty'}`)
      return ''
    })
    if (failed) return nothing
    if (names.length > 0) this.origins.set(path, names.join(', '))
    return names.length === 1 && whole.test(text) ? convert(expanded, schema) : expanded
  }

  #problem (path: string, message: string): typeof nothing {
    // One about the whole ends everything else, and must not be lost.
    if (this.problems.length <= maxProblems || path === '') this.problems.push({ path, message })
    return nothing
  }
}

/**
 * Copies an input as plain data, refuses what is not, and puts the variables of `env` in.
 * @param env null: texts are taken as they are
 */
export const resolve = (input: unknown, schema: JsonSchema, env: Env | null): Resolved => {
  const resolver = new Resolver(env)
  if (!isObject(input)) return { value: {}, origins: resolver.origins, problems: [{ path: '', message: `must be a mapping, got ${kind(input)}` }] }
  try {
    const value = resolver.copy(input, schema, '', 0)
    return { value: isObject(value) ? value : {}, origins: resolver.origins, problems: resolver.problems }
  } catch (error) {
    // Getters and proxies may throw anything.
    return { value: {}, origins: resolver.origins, problems: [{ path: '', message: `cannot be read as plain data (${error instanceof Error ? error.name : typeof error})` }] }
  }
}
