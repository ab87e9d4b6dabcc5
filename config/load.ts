import { ConfigError } from './error.ts'
import { readConfigFile } from './file.ts'
import { deepFreeze } from './freeze.ts'
import { parseConfig } from './parse.ts'
import type { Env } from './resolve.ts'
import type { Config } from './schema.ts'
import { isObject } from './values.ts'

export interface LoadOptions {
  /** A file to read whatever the environment says. */
  file?: string
}

/** A configuration and where it came from. */
export interface Loaded {
  /** With source `demo` everything but `pools` and `routes`, which are empty: the demo upstreams are not listening yet. */
  config: Config
  source: 'file' | 'environment' | 'demo'
  /** The file's path, or null. */
  file: string | null
}

/** Variables that win over a file too, and the option that each sets. */
const overrides = [
  { variable: 'BREAKWATER_MAX_IN_FLIGHT', section: 'shedding', option: 'maxInFlight', emptyIsUnset: false },
  { variable: 'BREAKWATER_ADMIN_PORT', section: 'admin', option: 'port', emptyIsUnset: false },
  { variable: 'BREAKWATER_ADMIN_TOKEN', section: 'admin', option: 'token', emptyIsUnset: true }
] as const

/** Puts references to the variables in, so that their texts are converted, judged and named like those of a file. */
const withOverrides = (input: unknown, env: Env): unknown => {
  if (!isObject(input)) return input
  const result = { ...input }
  for (const { variable, section, option, emptyIsUnset } of overrides) {
    const text = env[variable]
    const given = result[section]
    if (text === undefined || (text === '' && emptyIsUnset)) continue
    if (given == null || isObject(given)) result[section] = { ...given, [option]: `\${${variable}}` }
  }
  return result
}

/** Set but empty is a mistake of whoever deploys; starting the demo in its place would hide it. */
const variable = (name: string, env: Env, wanted: string): string | undefined => {
  const text = env[name]
  if (text !== undefined && text.trim() === '') throw new ConfigError(name, [{ path: '', message: `must be ${wanted}, got nothing; unset it if it is not meant` }])
  return text
}

/** A single pool named `default`. The URLs are taken as they are: a variable's text is not searched for variables. */
const fromUpstreams = (list: string) => {
  const urls = list.split(',').map(url => url.trim().replaceAll('${', () => '$${'))
  return { pools: { default: { upstreams: urls.map(url => ({ url })) } }, routes: [{ path: '/*', pool: 'default' }] }
}

/** The pool stands in for the demo's, which is made once its upstreams listen. */
const forDemo = (env: Env): Config => {
  const placeholder = { pools: { demo: { upstreams: [{ url: 'http://127.0.0.1:9' }] } } }
  return deepFreeze({ ...parseConfig(withOverrides(placeholder, env), 'the environment', { env }), pools: {}, routes: [] })
}

/**
 * Finds and loads the configuration: the file that BREAKWATER_CONFIG names, else the upstreams of BREAKWATER_UPSTREAMS, else the
 * ground for the demo (`parseConfig({ ...config, pools }, 'demo')` completes it). Synchronous, and the only reader of the environment.
 * @throws ConfigError with everything that is wrong
 */
export const loadConfig = (env: Env = process.env, options: LoadOptions = {}): Loaded => {
  const file = options.file ?? variable('BREAKWATER_CONFIG', env, 'the path of a YAML or JSON file')
  if (file !== undefined) {
    const config = parseConfig(withOverrides(readConfigFile(file), env), file, { env })
    return { config, source: 'file', file }
  }
  const upstreams = variable('BREAKWATER_UPSTREAMS', env, 'a list of URLs with commas between them')
  if (upstreams === undefined) return { config: forDemo(env), source: 'demo', file: null }
  const config = parseConfig(withOverrides(fromUpstreams(upstreams), env), 'the environment (BREAKWATER_UPSTREAMS)', { env })
  return { config, source: 'environment', file: null }
}
