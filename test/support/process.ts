import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import type { TestContext } from 'node:test'
import { LineCollector } from './collect.ts'
import type { LineMatch, LogLine } from './collect.ts'
import { until } from './wait.ts'
import type { UntilOptions } from './wait.ts'

export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

export interface NodeProcess {
  readonly pid: number
  readonly child: ChildProcess
  /** Standard output as JSON lines; other text as `{ text }`. */
  readonly output: LineCollector
  /** Standard error, the same way. */
  readonly errors: LineCollector
  /** Resolves when the process has ended and its output has been read to the end. */
  readonly exit: Promise<Exit>
  /** A line of standard output. @throws after `timeoutMs` (30000: a start may take long on a busy machine), or when the process ends without it, telling its output */
  waitForLine (match: LineMatch, options?: UntilOptions): Promise<LogLine>
  /** SIGTERM by default. */
  kill (signal?: NodeJS.Signals): void
}

export interface SpawnOptions {
  /** Added to our own environment; undefined removes a variable. */
  env?: Record<string, string | undefined>
  cwd?: string
}

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Runs node with these arguments. The process is killed at the end of the test, or of the test's own process, if it still runs. */
export function spawnNode (t: Pick<TestContext, 'after'>, args: string[], { env = {}, cwd }: SpawnOptions = {}): NodeProcess {
  // The variable tells a process that it is a part of a test run; a child is not.
  const { NODE_TEST_CONTEXT: _context, ...inherited } = process.env
  const child = spawn(process.execPath, args, { cwd, env: { ...inherited, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  running.add(child)
  const output = new LineCollector()
  const errors = new LineCollector()
  child.stdout.pipe(output)
  child.stderr.pipe(errors)
  let ended = false
  const exit = new Promise<Exit>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      ended = true
      running.delete(child)
      resolve({ code, signal })
    })
  })
  t.after(async () => {
    child.kill('SIGKILL')
    await exit
  })
  const told = (): string => JSON.stringify({ output: output.lines.slice(-10), errors: errors.lines.slice(-10) })
  return {
    pid: child.pid ?? -1,
    child,
    output,
    errors,
    exit,
    waitForLine: (match, options = {}) => until(() => {
      const line = output.find(match)
      if (line === undefined && ended) throw new Error(`the process ended without the line ${String(match)}`)
      return line
    }, { timeoutMs: 30_000, what: `the line ${String(match)}`, ...options }).catch((error: unknown) => {
      throw new Error(`${(error as Error).message}: ${told()}`, { cause: error })
    }),
    kill: (signal = 'SIGTERM') => { child.kill(signal) }
  }
}
