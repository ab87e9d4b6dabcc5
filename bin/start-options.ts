import { parseArgs } from 'node:util'
import { nearest } from '../config/suggest.ts'

/** The options of `fastify start` that make sense for the proxy, as `node:util` parseArgs takes them; the text is for the help. */
export const startOptions = {
  'address': { type: 'string', short: 'a', text: 'address to listen on (127.0.0.1; FASTIFY_ADDRESS)' },
  'port': { type: 'string', short: 'p', text: 'port to listen on (8080; FASTIFY_PORT or PORT)' },
  'socket': { type: 'string', short: 's', text: 'unix socket to listen on, instead of address and port' },
  'log-level': { type: 'string', short: 'l', text: 'level of the log (info; FASTIFY_LOG_LEVEL)' },
  'pretty-logs': { type: 'boolean', short: 'P', text: 'the log for people' },
  'close-grace-delay': { type: 'string', short: 'g', text: 'ms until fastify-cli cuts a stop short (delayMs + graceMs + 2000); 0: at once' },
  'plugin-timeout': { type: 'string', short: 'T', text: 'ms that the start of a plugin may take (10000); 0: any time' },
  'require': { type: 'string', short: 'r', multiple: true, text: 'module to require before the start' },
  'import': { type: 'string', short: 'i', multiple: true, text: 'module to import before the start' },
  'debug': { type: 'boolean', short: 'd', text: 'open Node\'s inspector' },
  'debug-port': { type: 'string', short: 'I', text: 'port of the inspector (9320)' },
  'debug-host': { type: 'string', text: 'address of the inspector' },
  'help': { type: 'boolean', short: 'h', text: 'this text' }
} as const

export const startUsage = `usage: breakwater start [options]

Starts the proxy under fastify-cli. Its configuration is in the file that BREAKWATER_CONFIG names, or in BREAKWATER_UPSTREAMS;
with neither it serves an embedded demo.

${Object.entries(startOptions).map(([name, option]) => `  ${'short' in option ? `-${option.short}, ` : '    '}--${name.padEnd(18)} ${option.text}`).join('\n')}
`

interface Judged { option: 'port' | 'log-level' | 'close-grace-delay' | 'plugin-timeout' | 'debug-port', variables: readonly string[], takes: (text: string) => boolean, is: string }

const levels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

const isPort = (text: string): boolean => /^\d{1,5}$/.test(text) && Number(text) <= 65535
const isMs = (text: string): boolean => /^\d{1,10}$/.test(text) && Number(text) <= 2147483647

/** What fastify-cli takes as it is, and what would fail only after all else has been started; and the variables in which it looks, in its order. */
const judged: readonly Judged[] = [
  { option: 'port', variables: ['FASTIFY_PORT', 'PORT'], takes: isPort, is: 'a number from 0 to 65535' },
  { option: 'log-level', variables: ['FASTIFY_LOG_LEVEL'], takes: (text) => levels.includes(text), is: `one of ${levels.join(', ')}` },
  { option: 'close-grace-delay', variables: ['FASTIFY_CLOSE_GRACE_DELAY'], takes: isMs, is: 'a number of milliseconds' },
  { option: 'plugin-timeout', variables: ['FASTIFY_PLUGIN_TIMEOUT'], takes: isMs, is: 'a number of milliseconds' },
  { option: 'debug-port', variables: ['FASTIFY_DEBUG_PORT'], takes: isPort, is: 'a number from 0 to 65535' }
]

/** The first of these variables that is set, and to something: an empty one is none. */
export const setVariable = (variables: readonly string[], environment: NodeJS.ProcessEnv): string | undefined =>
  variables.find((name) => (environment[name] ?? '') !== '')

/** What is wrong with the variables that fastify-cli reads where no argument says otherwise; null where nothing is. */
export function environmentProblem (argv: string[], environment: NodeJS.ProcessEnv): string | null {
  const { values } = parseArgs({ args: argv, options: startOptions, strict: false, allowPositionals: true })
  for (const { option, variables, takes, is } of judged) {
    const name = setVariable(variables, environment)
    const unused = values[option] !== undefined || (option === 'port' && (values.socket !== undefined || setVariable(['FASTIFY_SOCKET'], environment) !== undefined))
    if (name !== undefined && !unused && !takes(environment[name] as string)) return `${name} must be ${is}, not "${environment[name]}"`
  }
  return null
}

/** Whether any free port is asked for. */
export function wantsAnyPort (argv: string[], environment: NodeJS.ProcessEnv): boolean {
  const { values } = parseArgs({ args: argv, options: startOptions, strict: false, allowPositionals: true })
  const name = setVariable(['FASTIFY_PORT', 'PORT'], environment)
  const port = values.port ?? (name === undefined ? undefined : environment[name])
  return port !== undefined && Number(port) === 0
}

/** What is wrong with the arguments, for people; null where nothing is. */
export function startProblem (argv: string[]): string | null {
  try {
    const { positionals, values, tokens } = parseArgs({ args: argv, options: startOptions, strict: true, allowPositionals: true, tokens: true })
    // Of two values fastify-cli makes a list, with which nothing is done that either of them says.
    const twice = tokens.find((token, at) => token.kind === 'option' && !('multiple' in startOptions[token.name]) && tokens.findIndex((each) => each.kind === 'option' && each.name === token.name) < at)
    if (twice?.kind === 'option') return `--${twice.name} stands twice`
    const [file] = positionals
    for (const { option, takes, is } of judged) {
      const value = values[option]
      if (value !== undefined && !takes(value)) return `--${option} must be ${is}, not "${value}"`
    }
    return file === undefined ? null : `"${file}" is no option. A configuration file is named by BREAKWATER_CONFIG: BREAKWATER_CONFIG=${file} breakwater start`
  } catch (error) {
    const { message } = error as Error
    const [, unknown] = /^Unknown option '([^']*)'/.exec(message) ?? []
    if (unknown === undefined) return message
    const near = unknown.startsWith('--') ? nearest(unknown.slice(2), Object.keys(startOptions)) : null
    return `unknown option ${unknown}${near === null ? '' : `; did you mean --${near}?`}`
  }
}
