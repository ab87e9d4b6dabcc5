import { oneLine } from '../../lib/one-line.ts'
import { AdminFailure } from '../admin-client.ts'
import { UsageError, type Command, type OwnCommand, type Terminal } from './command.ts'
import { helpOf, overview } from './help.ts'
import { parseCommand, unknown } from './parse.ts'

/** Ended by Ctrl-C before it was done, as a shell says it. */
const interrupted = 130

async function runCommand (command: Command, argv: readonly string[], terminal: Terminal): Promise<number> {
  try {
    const given = parseCommand(command, argv)
    if (given !== 'help') return await command.run(given, terminal)
    terminal.out(helpOf(command).trimEnd())
    return 0
  } catch (error) {
    if (terminal.stopped.aborted) return interrupted
    if (error instanceof UsageError) {
      terminal.complain(`breakwater ${command.name}: ${error.message}`, `breakwater ${command.name} --help says more.`)
      return 2
    }
    if (!(error instanceof AdminFailure)) throw error
    terminal.complain(`breakwater ${command.name}: ${oneLine(error.message)}`)
    return error.exitCode
  }
}

/** Runs one of the commands. Gives its exit code; null where it goes on running and ends the process itself. */
export async function runLine (commands: ReadonlyArray<Command | OwnCommand>, argv: readonly string[], terminalOf: () => Terminal): Promise<number | null> {
  const [name, ...rest] = argv
  const command = commands.find((each) => each.name === name)
  if (command !== undefined) return 'run' in command ? await runCommand(command, rest, terminalOf()) : await command.runArguments(rest)
  const terminal = terminalOf()
  if (name === '--help' || name === '-h' || name === 'help') {
    terminal.out(overview(commands).trimEnd())
    return 0
  }
  terminal.complain(name === undefined ? 'which command?' : unknown('command', name, commands.map((each) => each.name)), '', overview(commands).trimEnd())
  return 2
}
