import { createInterface } from 'node:readline/promises'
import type { Terminal } from './command.ts'

/** Whoever reads us has read enough, as `head` has: that is no error, and nothing is left to say. */
function endQuietly (stream: NodeJS.WriteStream): void {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit()
  })
}

/** The terminal of this process. */
export function terminalOfProcess (): Terminal {
  const { stdout, stderr, stdin, env } = process
  endQuietly(stdout)
  endQuietly(stderr)
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    // A second one is not waited for.
    process.once(signal, () => stop.abort())
  }
  return {
    env,
    out: (...lines) => { stdout.write(`${lines.join('\n')}\n`) },
    complain: (...lines) => { stderr.write(`${lines.join('\n')}\n`) },
    tty: stdout.isTTY,
    // https://no-color.org: any value but an empty one
    colors: stdout.isTTY && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb',
    now: () => Date.now(),
    stopped: stop.signal,
    ask: (question) => {
      if (!stdin.isTTY) return null
      const lines = createInterface({ input: stdin, output: stderr })
      return lines.question(question, { signal: stop.signal }).finally(() => lines.close())
    }
  }
}
