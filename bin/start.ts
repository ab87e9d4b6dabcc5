import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { ConfigError, formatConfigError } from '../config/error.ts'
import { loadConfig } from '../config/load.ts'
import { manyLines } from '../lib/one-line.ts'
import { mergeRepeatedSignals } from './signals.ts'
import type { Option, OwnCommand } from './cli/command.ts'
import { environmentProblem, setVariable, startOptions, startProblem, startUsage, wantsAnyPort } from './start-options.ts'

/** What fastify-cli adds to our own times before it kills the process, in ms: our drain has to be the one that decides. */
const marginMs = 2000

/**
 * `breakwater start [options of fastify start]`: fastify-cli with the options that the proxy needs, on 127.0.0.1:8080 unless told
 * otherwise. Returns null when fastify-cli has taken over, 2 for wrong arguments or a wrong configuration.
 */
export async function startCommand (argv: string[]): Promise<number | null> {
  if (argv.includes('-h') || argv.includes('--help')) {
    process.stdout.write(startUsage)
    return 0
  }
  const problem = startProblem(argv)
  if (problem !== null) {
    process.stderr.write(`breakwater start: ${problem}\n\n${startUsage}`)
    return 2
  }
  const misset = environmentProblem(argv, process.env)
  if (misset !== null) {
    process.stderr.write(`breakwater start: ${misset}\n`)
    return 2
  }
  let graceMs: number
  try {
    const { delayMs, graceMs: wanted } = loadConfig().config.server.shutdown
    graceMs = delayMs + wanted + marginMs
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stderr.write(`${manyLines(formatConfigError(error))}\n`)
    return 2
  }
  const given = new Set(argv.map((each) => each.split('=')[0]))
  const unlessGiven = (names: string[], variable: string, value: string): string[] =>
    names.some((name) => given.has(name)) || setVariable([variable], process.env) !== undefined ? [] : [names[0] as string, value]
  const args = [
    '--options',
    ...unlessGiven(['-l', '--log-level'], 'FASTIFY_LOG_LEVEL', 'info'),
    ...unlessGiven(['-g', '--close-grace-delay'], 'FASTIFY_CLOSE_GRACE_DELAY', String(graceMs)),
    ...(given.has('-s') || given.has('--socket') ? [] : unlessGiven(['-a', '--address'], 'FASTIFY_ADDRESS', '127.0.0.1')),
    ...(given.has('-s') || given.has('--socket') ? [] : setVariable(['PORT'], process.env) !== undefined ? [] : unlessGiven(['-p', '--port'], 'FASTIFY_PORT', '8080')),
    ...argv,
    fileURLToPath(new URL('../app.js', import.meta.url))
  ]
  // fastify-cli takes the number 0 for no port, and looks on: in PORT, where "0" is a text, and then for 3000.
  if (wantsAnyPort(argv, process.env)) process.env['PORT'] = '0'
  mergeRepeatedSignals(process)
  const { cli } = createRequire(import.meta.url)('fastify-cli/start.js') as { cli: (args: string[]) => void }
  cli(args)
  return null
}

/** What is said of the command. */
export const startSpec: OwnCommand = {
  name: 'start',
  summary: 'start the proxy under fastify-cli; options of `fastify start` may follow',
  operands: [],
  options: Object.fromEntries(Object.entries(startOptions).flatMap(([name, option]): Array<[string, Option]> => name === 'help' ? [] : [[name, {
    text: option.text,
    ...'short' in option && { short: option.short },
    ...option.type === 'string' && { value: 'VALUE' }
  }]])),
  runArguments: startCommand
}
