import { parseArgs } from 'node:util'
import { diffConfig } from '../config/diff.ts'
import { ConfigError, formatConfigError } from '../config/error.ts'
import { loadConfig } from '../config/load.ts'
import { redactConfig } from '../config/redact.ts'
import type { Config } from '../config/schema.ts'
import { askAdmin } from './ask-admin.ts'
import { diffLines } from './diff-text.ts'

const usage = `usage: breakwater check FILE [--against FILE | --admin URL [--token TOKEN]]

Tells everything that is wrong with a configuration file, and what taking it would change:

  --against FILE   compared with this file, which is the one before
  --admin URL      compared with what a running proxy has, which judges it too; like http://127.0.0.1:9090
  --token TOKEN    the admin token; left out: admin.token of the file, or BREAKWATER_ADMIN_TOKEN
`

interface Arguments {
  file: string
  against: string | undefined
  admin: string | undefined
  token: string | undefined
}

/** The arguments, or what is wrong with them. */
function parse (argv: string[]): Arguments | string {
  const option = { type: 'string' } as const
  try {
    const { positionals: [file, ...rest], values: { against, admin, token } } = parseArgs({ args: argv, options: { against: option, admin: option, token: option }, allowPositionals: true })
    if (file === undefined || rest.length > 0) return 'one file is wanted'
    if (admin !== undefined && against !== undefined) return '--admin and --against exclude each other'
    if (token !== undefined && admin === undefined) return '--token goes with --admin'
    if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) return '--token must be of visible ASCII characters'
    if (admin !== undefined && !isAdminUrl(admin)) return '--admin must be a URL like http://127.0.0.1:9090, without credentials'
    return { file, against, admin, token }
  } catch (error) {
    return (error as Error).message
  }
}

function isAdminUrl (text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null
  return url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' && url.search === '' && url.hash === ''
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

/** Where the command reads variables and writes. */
export interface Surroundings {
  env: Readonly<Record<string, string | undefined>>
  /** Writes lines to standard output. */
  out: (...lines: string[]) => void
  /** Writes lines to standard error. */
  complain: (...lines: string[]) => void
}

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
    complain(formatConfigError(error))
    return null
  }
}

/** `breakwater check FILE`. 0: valid; 1: the running proxy could not be asked; 2: not valid, or wrong arguments. */
export async function checkCommand (argv: string[], around: Surroundings = ofProcess): Promise<number> {
  if (argv.includes('--help') || argv.includes('-h')) {
    around.out(usage.trimEnd())
    return 0
  }
  const given = parse(argv)
  if (typeof given === 'string') {
    around.complain(given, '', usage.trimEnd())
    return 2
  }
  const { file, against, admin, token } = given
  const config = load(file, around)
  if (config === null) return 2
  around.out(`${file} is valid: ${counted(Object.keys(config.pools).length, 'pool')}, ${counted(config.routes.length, 'route')}`)
  if (against !== undefined) return compare(config, against, around)
  return admin === undefined ? 0 : await compareWithRunning(config, admin, token ?? config.admin.token, around)
}

function compare (config: Config, file: string, around: Surroundings): number {
  const before = load(file, around)
  if (before === null) return 2
  around.out(`against ${file}:`, ...diffLines(diffConfig(before, config), redactConfig(before), redactConfig(config)))
  return 0
}

async function compareWithRunning (config: Config, admin: string, token: string, { out, complain }: Surroundings): Promise<number> {
  const verdict = await askAdmin(admin, token, config)
  if (verdict.kind === 'refused') {
    complain(`${admin} could not judge it: ${verdict.why}`)
    return 1
  }
  if (verdict.kind === 'invalid') {
    complain(formatConfigError(new ConfigError(admin, verdict.errors)))
    return 2
  }
  out(`against ${admin}:`, ...diffLines(verdict.diff, verdict.running, redactConfig(config), verdict.inFlight))
  return 0
}
