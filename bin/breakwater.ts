#!/usr/bin/env node
/** The command line: each command in a file of its own. */
import { checkCommand } from './check.ts'
import { startCommand } from './start.ts'
import { upstreamCommand } from './upstream.ts'

const commands: Record<string, { run: (argv: string[]) => Promise<number | null>, help: string }> = {
  start: { run: startCommand, help: 'start the proxy under fastify-cli; options of `fastify start` may follow' },
  check: { run: checkCommand, help: 'check a configuration file, and tell what it would change in another one or in a running proxy' },
  upstream: { run: upstreamCommand, help: 'run a scripted upstream for trials' }
}

function usage (): string {
  const rows = Object.entries(commands).map(([name, { help }]) => `  ${name.padEnd(10)} ${help}`)
  return `usage: breakwater <command> [options]\n\n${rows.join('\n')}\n`
}

const [name, ...argv] = process.argv.slice(2)
const command = name === undefined ? undefined : commands[name]
if (command === undefined) {
  const asked = name === '--help' || name === '-h' || name === 'help'
  if (asked) process.stdout.write(usage())
  else process.stderr.write(`${name === undefined ? 'which command?' : `unknown command "${name}"`}\n\n${usage()}`)
  process.exitCode = asked ? 0 : 2
} else {
  const code = await command.run(argv)
  if (code !== null) process.exitCode = code
}
