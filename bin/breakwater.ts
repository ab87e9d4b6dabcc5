#!/usr/bin/env node
/** The command line: each command in a file of its own, and all of them in one table. */
import { commands } from './cli/commands.ts'
import { runLine } from './cli/run.ts'
import { terminalOfProcess } from './cli/terminal.ts'

const code = await runLine(commands, process.argv.slice(2), terminalOfProcess)
if (code !== null) process.exitCode = code
