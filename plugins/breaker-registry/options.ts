import { Value } from 'typebox/value'
import { BreakerOptions } from '../../config/schema.ts'

export type DeepPartial<T> = T extends object ? { [K in keyof T]?: DeepPartial<T[K]> | undefined } : T

type Plain = Record<string, unknown>

const isPlain = (value: unknown): value is Plain => typeof value === 'object' && value !== null && !Array.isArray(value)

/** `over` laid over `base`, section by section; undefined means "as in base". Neither is changed. */
function merged (base: Plain, over: Plain): Plain {
  const result = { ...base }
  for (const [key, value] of Object.entries(over)) {
    if (value === undefined) continue
    const old = result[key]
    result[key] = isPlain(value) ? merged(isPlain(old) ? old : {}, value) : value
  }
  return result
}

/** Where in the options, as people write it: `window.failureRatio`. */
const dotted = (pointer: string): string => pointer.slice(1).replaceAll('/', '.')

/**
 * Complete, checked, frozen options: the schema's defaults, under `base`, under `over`.
 * @throws TypeError naming the path of each option that is wrong
 */
export function completeOptions (base: DeepPartial<BreakerOptions>, over: DeepPartial<BreakerOptions>): BreakerOptions {
  const options = Value.Default(BreakerOptions, merged(merged({}, base), over))
  if (!Value.Check(BreakerOptions, options)) throw new TypeError(`invalid breaker options: ${complaints(options).join('; ')}`)
  Object.freeze(options.window)
  Object.freeze(options.halfOpen)
  return Object.freeze(options)
}

function complaints (options: unknown): string[] {
  const byPath = new Map<string, string>()
  for (const { keyword, instancePath, message } of Value.Errors(BreakerOptions, options)) {
    // an unknown key is told at its own path as well
    if (keyword === 'additionalProperties') continue
    const path = dotted(instancePath)
    const known = byPath.get(path)
    const told = keyword === 'boolean' ? 'is not an option' : message
    byPath.set(path, known === undefined ? told : `${known} or ${told}`)
  }
  return [...byPath].map(([path, told]) => path === '' ? told : `${path} ${told}`)
}
