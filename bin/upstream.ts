import { parseArgs } from 'node:util'
import type { Option, OwnCommand } from './cli/command.ts'
import { startUpstream } from './scripted-upstream.ts'
import { UpstreamOptionError, checkUpstreamOptions, upstreamFields } from './upstream-options.ts'
import type { UpstreamOptions } from './upstream-options.ts'

export { startUpstream }

type FlagValue = string | boolean | Array<string | boolean> | undefined

const valueNames = { integer: 'N', ratio: 'RATIO', text: 'TEXT', headers: 'FIELD' } as const

const help = `Usage: breakwater upstream [options]

Starts an HTTP server that misbehaves on request, to try a proxy against.

Options:
${Object.values(upstreamFields).map(field => {
  const flag = field.kind === 'boolean' ? `--${field.flag}` : `--${field.flag} ${valueNames[field.kind]}`
  return `  ${flag.padEnd(26)}${field.help}`
}).join('\n')}
  --help                    prints this

Paths:
  /                         JSON about the request: upstream, method, url, headers, bodyBytes, count
  /echo                     the request's body, streamed back
  /bytes/N                  N bytes
  /status/NNN               that status
  /slow/MS                  the JSON, after MS milliseconds
  /sse                      an event each 200 ms
  /cut  /reset  /hang       that fault, once
  GET /__stats              counters
  POST /__control           changes the faults while it runs (from this machine only), as {"failEvery":3}
  POST /__drill             has it held by \`breakwater drill\`, as {"ttlMs":15000}: so long after its last word
`

function toHeader (text: string): [string, string] {
  const colon = text.indexOf(':')
  if (colon < 1) throw new UpstreamOptionError([`--header: '${text}' is not 'name: value'`])
  return [text.slice(0, colon).trim(), text.slice(colon + 1).trim()]
}

function toNumber (flag: string, text: string): number {
  if (!/^[0-9]+(\.[0-9]+)?$/.test(text)) throw new UpstreamOptionError([`--${flag}: '${text}' is not a number`])
  return Number(text)
}

/** Throws a TypeError (unknown flag, missing value) or an UpstreamOptionError (unusable value). */
function parseUpstreamArgs (argv: string[]): UpstreamOptions | 'help' {
  const flags = Object.values(upstreamFields).map(({ flag, kind }) => [flag, kind === 'boolean'
    ? { type: 'boolean' as const }
    : { type: 'string' as const, multiple: kind === 'headers' }] as const)
  const parsed = parseArgs({ args: argv, options: { ...Object.fromEntries(flags), help: { type: 'boolean' } }, strict: true, allowPositionals: false })
  const values = parsed.values as Record<string, FlagValue>
  if (values['help'] === true) return 'help'
  const options: Record<string, unknown> = {}
  for (const [key, { flag, kind }] of Object.entries(upstreamFields)) {
    const value = values[flag]
    if (value === undefined) continue
    if (Array.isArray(value)) options[key] = value.map(text => toHeader(String(text)))
    else options[key] = typeof value === 'string' && (kind === 'integer' || kind === 'ratio') ? toNumber(flag, value) : value
  }
  return checkUpstreamOptions(options, 'all', key => `--${upstreamFields[key].flag}`)
}

function complain (message: string, exitCode: number): number {
  process.stderr.write(`breakwater upstream: ${message}\n`)
  return exitCode
}

function stopSignal (): Promise<void> {
  return new Promise(resolve => {
    const stop = () => {
      process.off('SIGTERM', stop)
      process.off('SIGINT', stop)
      resolve()
    }
    process.on('SIGTERM', stop)
    process.on('SIGINT', stop)
  })
}

/**
 * The command `breakwater upstream`: runs a scripted upstream until SIGTERM or SIGINT, then cuts what is open.
 * @returns the exit code: 0 after a signal or --help, 1 when it cannot listen, 2 for arguments that cannot be used
 */
export async function upstreamCommand (argv: string[]): Promise<number> {
  let options: UpstreamOptions | 'help'
  try {
    options = parseUpstreamArgs(argv)
  } catch (error) {
    return complain(`${(error as Error).message}\nTry --help.`, 2)
  }
  if (options === 'help') {
    process.stdout.write(help)
    return 0
  }
  try {
    const upstream = await startUpstream(options)
    const stopped = stopSignal()
    const { name, host, port, url } = upstream
    process.stdout.write(`${JSON.stringify({ level: 30, time: Date.now(), pid: process.pid, msg: 'upstream listening', name, host, port, url })}\n`)
    await stopped
    await upstream.close()
    return 0
  } catch (error) {
    return complain((error as Error).message, 1)
  }
}

/** What is said of the command. */
export const upstreamSpec: OwnCommand = {
  name: 'upstream',
  summary: 'run a scripted upstream for trials',
  operands: [],
  options: Object.fromEntries(Object.values(upstreamFields).map(({ flag, kind, help: text }): [string, Option] => [flag, { text, ...kind !== 'boolean' && { value: valueNames[kind] } }])),
  runArguments: upstreamCommand
}
