import { deepFreeze } from './freeze.ts'
import type { Config } from './schema.ts'
import { isObject, secretPaths } from './values.ts'

const redact = (value: Record<string, unknown>, [key = '', ...rest]: string[]): void => {
  const member = value[key]
  if (rest.length > 0) {
    if (isObject(member)) redact(member, rest)
  } else if (member !== undefined && member !== '') value[key] = '[redacted]'
}

/** A copy that may be shown: secrets that are set read `[redacted]`. */
export const redactConfig = (config: Config): Config => {
  const copy = structuredClone(config)
  for (const path of secretPaths) redact(copy, path.split('.'))
  return deepFreeze(copy)
}
