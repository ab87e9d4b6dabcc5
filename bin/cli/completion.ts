import type { Command, Option } from './command.ts'

type Shown = Omit<Command, 'run'>

export const shells = ['bash', 'zsh', 'fish'] as const

const withHelp = ({ options }: Shown): Array<[string, Option]> => Object.entries({ ...options, help: { short: 'h', text: 'this text' } })
const flagsOf = (command: Shown): string[] => withHelp(command).flatMap(([name, { short }]) => [`--${name}`, ...short === undefined ? [] : [`-${short}`]])
const spellings = (name: string, { short }: Option): string => short === undefined ? `--${name}` : `--${name}|-${short}`

/** In single quotes, for sh and its kin. */
const quote = (text: string): string => `'${text.replaceAll('\'', '\'\\\'\'')}'`

function bash (commands: readonly Shown[]): string {
  const branches = commands.map((command) => {
    const valued = withHelp(command).filter(([, { value }]) => value !== undefined)
    const afterOption = valued.map(([name, option]) =>
      `        ${spellings(name, option)}) ${option.choices !== undefined ? `COMPREPLY=($(compgen -W ${quote(option.choices.join(' '))} -- "$cur"))` : option.complete === 'files' ? 'COMPREPLY=($(compgen -f -- "$cur"))' : ':'}; return ;;`)
    const places = command.operands.map(({ choices, complete }, at) =>
      choices !== undefined ? `        ${at}) COMPREPLY=($(compgen -W ${quote(choices.join(' '))} -- "$cur")) ;;` : complete === 'files' ? `        ${at}) COMPREPLY=($(compgen -f -- "$cur")) ;;` : null).filter((line) => line !== null)
    return [
      `    ${command.name})`,
      `      valued=${quote(` ${valued.flatMap(([name, { short }]) => [`--${name}`, ...short === undefined ? [] : [`-${short}`]]).join(' ')} `)}`,
      ...afterOption.length > 0 ? ['      case "$prev" in', ...afterOption, '      esac'] : [],
      `      if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W ${quote(flagsOf(command).join(' '))} -- "$cur")); return; fi`,
      ...places.length > 0 ? ['      case "$(_breakwater_place "$valued")" in', ...places, '      esac'] : [],
      '      ;;'
    ].join('\n')
  })
  return `# bash completion for breakwater; made by \`breakwater completion bash\`.
# How many operands stand before the cursor; values of options are none.
_breakwater_place () {
  local at count=0
  for ((at = 2; at < COMP_CWORD; at++)); do
    if [[ \${COMP_WORDS[at]} == -* ]]; then
      [[ $1 == *" \${COMP_WORDS[at]} "* ]] && ((at++))
    else
      ((count++))
    fi
  done
  echo "$count"
}
_breakwater () {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} valued
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W ${quote([...commands.map(({ name }) => name), 'help'].join(' '))} -- "$cur"))
    return
  fi
  case "\${COMP_WORDS[1]}" in
${branches.join('\n')}
  esac
}
complete -o filenames -o bashdefault -F _breakwater breakwater
`
}

/** For a spec of _arguments: colons and brackets have a meaning there. */
const zshText = (text: string): string => text.replaceAll(/[:[\]\\]/g, '\\$&')

function zsh (commands: readonly Shown[]): string {
  const action = ({ choices, complete }: { choices?: readonly string[], complete?: 'files' }): string => choices !== undefined ? `(${choices.join(' ')})` : complete === 'files' ? '_files' : ' '
  const branches = commands.map((command) => {
    const specs = [
      ...withHelp(command).flatMap(([name, option]) => [`--${name}`, ...option.short === undefined ? [] : [`-${option.short}`]].map((flag) =>
        quote(`${option.repeat === true ? '*' : ''}${flag}[${zshText(option.text)}]${option.value === undefined ? '' : `:${zshText(option.value)}:${action(option)}`}`))),
      ...command.operands.map((operand, at) => quote(`${at + 1}:${zshText(operand.name)}:${action(operand)}`))
    ]
    return `    ${command.name}) _arguments -s ${specs.join(' ')} ;;`
  })
  return `#compdef breakwater
# zsh completion for breakwater; made by \`breakwater completion zsh\`.
_breakwater () {
  local -a commands
  commands=(
${commands.map(({ name, summary }) => `    ${quote(`${name}:${zshText(summary)}`)}`).join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  words=("\${(@)words[2,-1]}")
  (( CURRENT-- ))
  case $command in
${branches.join('\n')}
  esac
}
if [[ $funcstack[1] == _breakwater ]]; then _breakwater "$@"; else compdef _breakwater breakwater; fi
`
}

/** fish knows two escapes within single quotes. */
const fishQuote = (text: string): string => `'${text.replaceAll(/[\\']/g, '\\$&')}'`

function fish (commands: readonly Shown[]): string {
  const lines = commands.flatMap((command) => {
    const seen = `-n ${fishQuote(`__fish_seen_subcommand_from ${command.name}`)}`
    const operands = command.operands.flatMap(({ choices, complete }) => choices !== undefined ? [`complete -c breakwater ${seen} -f -a ${fishQuote(choices.join(' '))}`] : complete === 'files' ? [`complete -c breakwater ${seen} -F`] : [])
    return [
      `complete -c breakwater -n __fish_use_subcommand -f -a ${command.name} -d ${fishQuote(command.summary)}`,
      ...withHelp(command).map(([name, { short, value, choices, complete, text }]) =>
        `complete -c breakwater ${seen} -l ${name}${short === undefined ? '' : ` -s ${short}`}${value === undefined ? '' : choices !== undefined ? ` -x -a ${fishQuote(choices.join(' '))}` : complete === 'files' ? ' -r -F' : ' -x'} -d ${fishQuote(text)}`),
      ...operands
    ]
  })
  return `# fish completion for breakwater; made by \`breakwater completion fish\`.\ncomplete -c breakwater -f\n${lines.join('\n')}\n`
}

/** The script for a shell. */
export function completionFor (shell: string, commands: readonly Shown[]): string {
  return shell === 'bash' ? bash(commands) : shell === 'zsh' ? zsh(commands) : fish(commands)
}
