import { deepFreeze } from './freeze.ts'
import { indexPath, keyPath } from './path.ts'
import type { Config } from './schema.ts'
import { isSecret } from './secrets.ts'
import { isObject } from './values.ts'

/** What stands in the place of a secret that is set. */
export const redacted = '[redacted]'

/** An empty text is no secret, and a route's "*" asks only that a request has something. */
const hides = (value: unknown, path: string): boolean => value !== '' && !(value === '*' && path.startsWith('routes')) && isSecret(path)

const redact = (value: unknown, path: string): unknown => {
  if (Array.isArray(value)) return value.map((member, index) => redact(member, indexPath(path, index)))
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, redact(member, keyPath(path, key))]))
  return hides(value, path) ? redacted : value
}

/** A copy that may be shown: secrets that are set read `[redacted]`. */
export const redactConfig = (config: Config): Config => deepFreeze(redact(config, '')) as Config
