import { checkSpec } from '../check.ts'
import { startSpec } from '../start.ts'
import { upstreamSpec } from '../upstream.ts'
import type { Command, OwnCommand } from './command.ts'
import { completionFor, shells } from './completion.ts'
import { drillCommand } from './drill.ts'
import { eventsCommand } from './events.ts'
import { explainCommand } from './explain.ts'
import { reloadCommand } from './reload.ts'
import { requestsCommand } from './requests.ts'
import { statusCommand } from './status.ts'
import { drainCommand, forceCommand, healthCheckCommand, readyCommand, resetCommand } from './writes.ts'

const completionCommand: Command = {
  name: 'completion',
  summary: 'print a completion script for a shell',
  operands: [{ name: 'SHELL', choices: shells }],
  options: {},
  notes: `bash: eval "$(breakwater completion bash)" in ~/.bashrc
zsh:  breakwater completion zsh > a file _breakwater in a folder of $fpath
fish: breakwater completion fish > ~/.config/fish/completions/breakwater.fish`,
  run: async ({ operands: [shell = ''] }, terminal) => {
    terminal.out(completionFor(shell, commands).trimEnd())
    return 0
  }
}

/** All commands, in the order of the help. */
export const commands: ReadonlyArray<Command | OwnCommand> = [
  startSpec, checkSpec, statusCommand, requestsCommand, explainCommand, eventsCommand, forceCommand, resetCommand, drainCommand, readyCommand, healthCheckCommand, reloadCommand,
  drillCommand, upstreamSpec, completionCommand
]
