import { completeBreaker, type DeepPartial } from '../../config/complete.ts'
import type { BreakerOptions } from '../../config/schema.ts'

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

/**
 * Complete, checked, frozen options: the schema's defaults, under `base`, under `over`.
 * @throws TypeError naming the path of each option that is wrong
 */
export const completeOptions = (base: DeepPartial<BreakerOptions>, over: DeepPartial<BreakerOptions>): BreakerOptions => completeBreaker(merged(base, over))
