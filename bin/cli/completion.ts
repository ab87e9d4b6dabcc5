import type { Command, Option } from './command.ts'

type Shown = Omit<Command, 'run'>

export const shells = ['bash', 'zsh', 'fish'] as const

const help = { name: 'help', summary: 'list all commands' }

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
      ...withHelp(command).flatMap(([name, option]) => [`--${name}`, ...option.short === undefined ? [] : [`-${option.short}`]].map((flag, _at, both) =>
        quote(`${option.repeat === true ? '*' : `(${both.join(' ')})`}${flag}[${zshText(option.text)}]${option.value === undefined ? '' : `:${zshText(option.value)}:${action(option)}`}`))),
      ...command.operands.map((operand, at) => quote(`${at + 1}:${zshText(operand.name)}:${action(operand)}`))
    ]
    return `    ${command.name}) _arguments -s ${specs.join(' ')} ;;`
  })
  return `#compdef breakwater
# zsh completion for breakwater; made by \`breakwater completion zsh\`.
_breakwater () {
  local -a commands
  commands=(
${[...commands, help].map(({ name, summary }) => `    ${quote(`${name}:${zshText(summary)}`)}`).join('\n')}
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
    const seen = `-n ${fishQuote(`__breakwater_at ${command.name}`)}`
    const valued = withHelp(command).filter(([, { value }]) => value !== undefined).flatMap(([name, { short }]) => [`--${name}`, ...short === undefined ? [] : [`-${short}`]])
    const operands = command.operands.flatMap(({ choices, complete }, at) => {
      const there = `-n ${fishQuote([`__breakwater_at ${command.name} ${at}`, ...valued].join(' '))}`
      return choices !== undefined ? [`complete -c breakwater ${there} -f -k -a ${fishQuote(choices.join(' '))}`] : complete === 'files' ? [`complete -c breakwater ${there} -F`] : []
    })
    return [
      ...withHelp(command).map(([name, { short, value, choices, complete, text }]) =>
        `complete -c breakwater ${seen} -l ${name}${short === undefined ? '' : ` -s ${short}`}${value === undefined ? '' : choices !== undefined ? ` -x -a ${fishQuote(choices.join(' '))}` : complete === 'files' ? ' -r -F' : ' -x'} -d ${fishQuote(text)}`),
      ...operands
    ]
  })
  const names = [...commands, help].map(({ name, summary }) => `complete -c breakwater -n __breakwater_first -f -a ${name} -d ${fishQuote(summary)}`)
  return `# fish completion for breakwater; made by \`breakwater completion fish\`.
function __breakwater_first
  test (count (commandline -opc)) -eq 1
end
# Whether the command is $argv[1] and, where a place is given, so many operands stand before the cursor; values of the options behind it are none.
function __breakwater_at
  set -l words (commandline -opc)
  test (count $words) -ge 2; and test "$words[2]" = $argv[1]; or return 1
  test (count $argv) -ge 2; or return 0
  set -l place 0
  set -l value no
  for word in $words[3..]
    if test $value = yes
      set value no
    else if string match -q -- '-*' $word
      contains -- $word $argv[3..]; and set value yes
    else
      set place (math $place + 1)
    end
  end
  test $place -eq $argv[2]
end
complete -c breakwater -f
${[...names, ...lines].join('\n')}
`
}

/** The script for a shell. */
export function completionFor (shell: string, commands: readonly Shown[]): string {
  return shell === 'bash' ? bash(commands) : shell === 'zsh' ? zsh(commands) : fish(commands)
}
