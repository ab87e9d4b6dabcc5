import { setTimeout as sleep } from 'node:timers/promises'
import { jsonLine, oneLine } from '../../lib/one-line.ts'
import { AdminFailure, adminOf } from '../admin-client.ts'
import { adminOptions, exitCodes, jsonOption, UsageError, type Command, type Terminal } from './command.ts'
import { durationOf } from './duration.ts'
import { readStatus } from './status-read.ts'
import { statusLines } from './status-text.ts'

const minIntervalMs = 200

/** `breakwater status`. */
export const statusCommand: Command = {
  name: 'status',
  summary: 'show what a running proxy believes of its upstreams, and why',
  operands: [],
  options: {
    watch: { short: 'w', text: 'again and again, until Ctrl-C' },
    interval: { value: 'TIME', text: 'between two looks with --watch (2s)' },
    check: { text: 'exit with 1 while the proxy should get no traffic (GET /readyz)' },
    ...jsonOption,
    ...adminOptions
  },
  notes: exitCodes,
  async run (given, terminal) {
    const admin = adminOf(given, terminal.env)
    const intervalMs = durationOf(given.text('interval') ?? '2s', '--interval')
    if (given.text('interval') !== undefined && !given.flag('watch')) throw new UsageError('--interval goes with --watch')
    if (intervalMs < minIntervalMs) throw new UsageError(`--interval must be at least ${minIntervalMs}ms`)
    const look = async (): Promise<{ lines: string[], ready: boolean }> => {
      const status = await readStatus(admin, terminal.stopped)
      return { lines: given.flag('json') ? [jsonLine(status)] : statusLines(status, terminal.now(), terminal.colors), ready: status.ready }
    }
    if (given.flag('watch')) return await watch(look, intervalMs, terminal, given.flag('json'))
    const { lines, ready } = await look()
    terminal.out(...lines)
    return given.flag('check') && !ready ? 1 : 0
  }
}

/** On a terminal each look takes the place of the one before; elsewhere an empty line, or for JSON none, stands between two. */
async function watch (look: () => Promise<{ lines: string[] }>, intervalMs: number, terminal: Terminal, json: boolean): Promise<number> {
  let first = true
  while (!terminal.stopped.aborted) {
    let lines: string[]
    try {
      ({ lines } = await look())
    } catch (error) {
      if (terminal.stopped.aborted) break
      if (!(error instanceof AdminFailure) || first) throw error
      lines = json ? [] : [oneLine(error.message)]
    }
    if (terminal.tty && !json) terminal.out(`\u001b[H\u001b[2J\u001b[3J${lines.join('\n')}`)
    else if (lines.length > 0) terminal.out(...first || json ? [] : [''], ...lines)
    first = false
    await sleep(intervalMs, null, { signal: terminal.stopped }).catch(() => {})
  }
  return 0
}
