import { nearest } from '../../config/suggest.ts'
import { UsageError, type Command, type Given, type Option } from './command.ts'

const maybe = (name: string, known: readonly string[], sign = ''): string => {
  const near = nearest(name, known)
  return near === null ? '' : `; did you mean ${sign}${near}?`
}

/** What is said of a name that is not among the known ones. */
export const unknown = (what: string, name: string, known: readonly string[]): string => `unknown ${what} "${name}"${maybe(name, known)}`

function checkChoice (label: string, value: string, choices: readonly string[] | undefined): void {
  if (choices !== undefined && !choices.includes(value)) throw new UsageError(`${label} must be ${choices.join(', ')}, not "${value}"${maybe(value, choices)}`)
}

/** Takes the arguments of a command apart. 'help' where that is asked for. @throws UsageError */
export function parseCommand ({ operands: wanted, options }: Pick<Command, 'operands' | 'options'>, argv: readonly string[]): Given | 'help' {
  const values = new Map<string, string[]>()
  const operands: string[] = []
  const rest = [...argv]
  const take = (name: string, option: Option, label: string, attached: string | undefined): void => {
    if (option.value === undefined) {
      if (attached !== undefined) throw new UsageError(`${label} takes no value`)
      values.set(name, [])
      return
    }
    const value = attached ?? rest.shift()
    if (value === undefined || (attached === undefined && value.startsWith('-') && value !== '-')) throw new UsageError(`${label} wants a value: ${label} ${option.value}`)
    checkChoice(label, value, option.choices)
    const before = values.get(name) ?? []
    if (before.length > 0 && option.repeat !== true) throw new UsageError(`${label} stands twice`)
    values.set(name, [...before, value])
  }
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '--') {
      operands.push(...rest.splice(0))
    } else if (word.startsWith('--')) {
      const [, name = '', attached] = /^--([^=]*)(?:=([^]*))?$/.exec(word) ?? []
      if (name === 'help') return 'help'
      const option = Object.hasOwn(options, name) ? options[name] : undefined
      if (option === undefined) throw new UsageError(`unknown option --${name}${maybe(name, [...Object.keys(options), 'help'], '--')}`)
      take(name, option, `--${name}`, attached)
    } else if (word.startsWith('-') && word !== '-') {
      if (word === '-h') return 'help'
      const [name, option] = Object.entries(options).find(([, { short }]) => word === `-${short}`) ?? []
      if (name === undefined || option === undefined) throw new UsageError(`unknown option ${word}`)
      take(name, option, word, undefined)
    } else {
      operands.push(word)
    }
  }
  const missing = wanted[operands.length]
  if (missing !== undefined) throw new UsageError(`${missing.name} is missing`)
  if (operands.length > wanted.length) throw new UsageError(`"${operands[wanted.length]}" is one argument too many`)
  for (const [at, { name, choices }] of wanted.entries()) checkChoice(name, operands[at] as string, choices)
  return { operands, flag: (name) => values.has(name), text: (name) => values.get(name)?.[0], list: (name) => values.get(name) ?? [] }
}
