import { diffConfig } from '../config/diff.ts'
import { ConfigError, formatConfigError } from '../config/error.ts'
import { loadConfig } from '../config/load.ts'
import { redactConfig } from '../config/redact.ts'
import type { Config } from '../config/schema.ts'
import { manyLines, oneLine } from '../lib/one-line.ts'
import { adminUrl, tokenOf } from './admin-client.ts'
import { askAdmin } from './ask-admin.ts'
import { UsageError, type Command, type Given, type OwnCommand, type Surroundings } from './cli/command.ts'
import { helpOf } from './cli/help.ts'
import { parseCommand } from './cli/parse.ts'
import { diffLines } from './diff-text.ts'

const options = {
  'against': { value: 'FILE', complete: 'files', text: 'compare with this file, which is the one before' },
  'admin': { value: 'URL', text: 'compare with what a running proxy has, which judges it too; like http://127.0.0.1:9090' },
  'token-file': { value: 'FILE', complete: 'files', text: 'file that holds the admin token; left out: admin.token of the file, or BREAKWATER_ADMIN_TOKEN' }
} as const satisfies Command['options']

/** What is said of the command, and how its arguments are taken apart. */
export const checkSpec: OwnCommand = {
  name: 'check',
  summary: 'tell what is wrong with a configuration file, and what taking it would change',
  operands: [{ name: 'FILE', complete: 'files' }],
  options,
  notes: `Exit codes: 0 valid; 2 not valid, or wrong arguments; 3 the running proxy cannot be reached, or does not judge it.`,
  runArguments: (argv) => checkCommand(argv)
}

interface Arguments {
  file: string
  against: string | undefined
  admin: string | undefined
  token: string | undefined
}

/** @throws UsageError */
function argumentsOf (given: Given): Arguments {
  const [admin, against] = [given.text('admin'), given.text('against')]
  if (admin !== undefined && against !== undefined) throw new UsageError('--admin and --against exclude each other')
  if (given.text('token-file') !== undefined && admin === undefined) throw new UsageError('--token-file goes with --admin')
  if (admin !== undefined) adminUrl(admin, '--admin')
  return { file: given.operands[0] as string, against, admin, token: given.text('token-file') === undefined ? undefined : tokenOf(given, {}) }
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

const ofProcess: Surroundings = {
  env: process.env,
  out: (...lines) => { process.stdout.write(`${lines.join('\n')}\n`) },
  complain: (...lines) => { process.stderr.write(`${lines.join('\n')}\n`) }
}

/** The file's configuration; null where it is not valid, which has been told then. */
function load (file: string, { env, complain }: Surroundings): Config | null {
  try {
    return loadConfig(env, { file }).config
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    complain(manyLines(formatConfigError(error)))
    return null
  }
}

/** `breakwater check FILE`. 0: valid; 2: not valid, or wrong arguments; 3: the running proxy could not be asked. */
export async function checkCommand (argv: string[], around: Surroundings = ofProcess): Promise<number> {
  let told: Arguments
  try {
    const given = parseCommand(checkSpec, argv)
    if (given === 'help') {
      around.out(helpOf(checkSpec).trimEnd())
      return 0
    }
    told = argumentsOf(given)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    around.complain(`breakwater check: ${error.message}`, '', helpOf(checkSpec).trimEnd())
    return 2
  }
  const { file, against, admin, token } = told
  const config = load(file, around)
  if (config === null) return 2
  around.out(`${file} is valid: ${counted(Object.keys(config.pools).length, 'pool')}, ${counted(config.routes.length, 'route')}`)
  if (against !== undefined) return compare(config, against, around)
  return admin === undefined ? 0 : await compareWithRunning(config, admin, token ?? config.admin.token, around)
}

function compare (config: Config, file: string, around: Surroundings): number {
  const before = load(file, around)
  if (before === null) return 2
  around.out(`against ${file}:`, ...diffLines(diffConfig(before, config), redactConfig(before), redactConfig(config)).map(oneLine))
  return 0
}

async function compareWithRunning (config: Config, admin: string, token: string, { out, complain }: Surroundings): Promise<number> {
  const verdict = await askAdmin(admin, token, config)
  if (verdict.kind === 'refused') {
    complain(`${admin} could not judge it: ${oneLine(verdict.why)}`)
    return 3
  }
  if (verdict.kind === 'invalid') {
    complain(manyLines(formatConfigError(new ConfigError(admin, verdict.errors))))
    return 2
  }
  out(`against ${admin}:`, ...diffLines(verdict.diff, verdict.running, redactConfig(config), verdict.inFlight).map(oneLine))
  return 0
}
