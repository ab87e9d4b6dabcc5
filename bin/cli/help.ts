import type { Command } from './command.ts'

/** `breakwater force POOL UPSTREAM open|closed|auto [options]`. */
const usageOf = ({ name, operands, options }: Omit<Command, 'run'>): string =>
  ['usage: breakwater', name, ...operands.map((each) => each.choices?.join('|') ?? each.name), ...Object.keys(options).length > 0 ? ['[options]'] : []].join(' ')

/** The help of one command. */
export function helpOf (command: Omit<Command, 'run'>): string {
  const rows = Object.entries({ ...command.options, help: { short: 'h', text: 'this text' } }).map(([name, option]) => {
    const { short, value, text } = option as Command['options'][string]
    return [`${short === undefined ? '    ' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`, text] as const
  })
  const width = Math.max(...rows.map(([left]) => left.length)) + 2
  const lines = rows.map(([left, text]) => `  ${left.padEnd(width)}${text}`)
  return `${usageOf(command)}\n\n${command.summary.charAt(0).toUpperCase()}${command.summary.slice(1)}.\n\n${lines.join('\n')}\n${command.notes === undefined ? '' : `\n${command.notes}\n`}`
}

/** The list of all commands. */
export function overview (commands: ReadonlyArray<Pick<Command, 'name' | 'summary'>>): string {
  const width = Math.max(...commands.map(({ name }) => name.length)) + 2
  return `usage: breakwater <command> [options]\n\n${commands.map(({ name, summary }) => `  ${name.padEnd(width)}${summary}`).join('\n')}\n\nbreakwater <command> --help says more.\n`
}
