import { checkMeaning } from './checks.ts'
import { configSchema } from './describe.ts'
import { ConfigError, gather, type Problem } from './error.ts'
import { deepFreeze } from './freeze.ts'
import { noteJudged } from './judged.ts'
import { type Env, resolve } from './resolve.ts'
import type { Config } from './schema.ts'
import { checkStructure } from './structure.ts'

export interface ParseOptions {
  /** Variables for `${NAME}` in texts. Left out: texts are taken as they are, as from an untrusted request body. */
  env?: Env
}

const named = ({ path, message }: Problem, origins: ReadonlyMap<string, string>): Problem => {
  const origin = origins.get(path)
  return { path, message: origin === undefined ? message : `${message} (from ${origin})` }
}

/** Left out with a single pool: everything goes there. */
const withRoutes = (config: Config): Config => {
  const pool = Object.keys(config.pools)[0]
  return config.routes.length > 0 || pool === undefined ? config : { ...config, routes: [{ path: '/*', pool }] }
}

/**
 * Makes a configuration of plain data: defaults filled in, judged as a whole, frozen to the last list. The input is not touched.
 * Reads the files that `tls` names.
 * @param where what to call the source in errors
 * @throws ConfigError with everything that is wrong; nothing else, whatever the input
 */
export const parseConfig = (input: unknown, where: string, options: ParseOptions = {}): Config => {
  const { value, origins, problems } = resolve(input, configSchema, options.env ?? null)
  // A document that could not be read as a whole has no parts to judge.
  if (problems.some(({ path }) => path === '')) throw new ConfigError(where, problems)
  const later = gather(checkStructure(value), checkMeaning(value)).map(problem => named(problem, origins))
  const errors = gather(problems, later)
  if (errors.length > 0) throw new ConfigError(where, errors)
  const config = deepFreeze(withRoutes(value as Config))
  noteJudged(config)
  return config
}
