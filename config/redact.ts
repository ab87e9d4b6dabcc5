import { deepFreeze } from './freeze.ts'
import type { Config } from './schema.ts'

/** A copy that may be shown: secrets that are set read `[redacted]`. */
export const redactConfig = (config: Config): Config => {
  const copy = structuredClone(config)
  if (copy.admin.token !== '') copy.admin.token = '[redacted]'
  return deepFreeze(copy)
}
