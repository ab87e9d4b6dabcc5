/** What an expression of PromQL asks for: enough of its grammar for expressions of ours, no parser of it all. */

export interface Matcher {
  label: string
  op: '=' | '!=' | '=~' | '!~'
  value: string
}

export interface Selector {
  metric: string
  matchers: Matcher[]
}

export interface Asked {
  selectors: Selector[]
  /** Labels by which is grouped or matched. */
  groupedBy: string[]
}

const token = /"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[a-zA-Z_:][\w:]*|\d[\w.]*|=~|!~|!=|[^\s]/g
const groupers = new Set(['by', 'without', 'on', 'ignoring', 'group_left', 'group_right'])
const words = new Set(['and', 'or', 'unless', 'bool', 'offset', 'Inf', 'NaN'])

/** @throws Error where a list of labels or matchers has no end */
export function askedBy (expression: string): Asked {
  const tokens: readonly string[] = expression.match(token) ?? []
  const selectors: Selector[] = []
  const groupedBy: string[] = []
  /** What stands up to `end`, with the commas taken out, and where it goes on. */
  const upTo = (from: number, end: string): [string[], number] => {
    const at = tokens.indexOf(end, from)
    if (at === -1) throw new Error(`no ${end} in ${expression}`)
    return [tokens.slice(from, at).filter((each) => each !== ','), at]
  }
  for (let i = 0; i < tokens.length; i++) {
    const name = tokens[i] as string
    const next = tokens[i + 1] ?? ''
    if (!/^[a-zA-Z_:]/.test(name) || words.has(name)) continue
    if (groupers.has(name)) {
      if (next !== '(') continue
      const [labels, end] = upTo(i + 2, ')')
      groupedBy.push(...labels)
      i = end
    } else if (next !== '(' && !groupers.has(next)) {
      const matchers: Matcher[] = []
      if (next === '{') {
        const [parts, end] = upTo(i + 2, '}')
        for (let at = 0; at < parts.length; at += 3) matchers.push({ label: parts[at] as string, op: parts[at + 1] as Matcher['op'], value: JSON.parse(parts[at + 2] as string) as string })
        i = end
      }
      selectors.push({ metric: name, matchers })
    }
  }
  return { selectors, groupedBy }
}

/** Whether a series has these labels; one that it lacks reads as ''. */
export function matches (labels: Readonly<Record<string, string>>, { label, op, value }: Matcher): boolean {
  const has = labels[label] ?? ''
  const equal = op.endsWith('~') ? new RegExp(`^(?:${value})$`).test(has) : has === value
  return op.startsWith('!') ? !equal : equal
}
