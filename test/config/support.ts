import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ConfigError, type Problem } from '../../config/error.ts'

/** The problems that an action is refused for; none if it succeeds. Any error but a ConfigError is thrown on. */
export const problemsOf = (action: () => unknown): readonly Problem[] => {
  try {
    action()
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.errors
    throw error
  }
}

/** The problems as `path: message` lines. */
export const linesOf = (action: () => unknown): string[] =>
  problemsOf(action).map(({ path, message }) => path === '' ? message : `${path}: ${message}`)

/** A valid configuration with one pool, `shop`, and other things besides. */
export const withShop = (pool: Record<string, unknown> = {}, rest: Record<string, unknown> = {}) =>
  ({ pools: { shop: { upstreams: [{ url: 'http://127.0.0.1:9001' }], ...pool } }, ...rest })

/** A file of the package, like `docs/options.md`: the tests run from a build below its root. */
export const shipped = (name: string): string => {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, name))) {
    if (folder === dirname(folder)) throw new Error(`${name} is nowhere above the tests`)
    folder = dirname(folder)
  }
  return join(folder, name)
}
