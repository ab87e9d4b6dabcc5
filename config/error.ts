/** One thing wrong with a configuration. */
export interface Problem {
  /** Where, like `pools.shop.upstreams[0].url`; empty for the document as a whole. */
  path: string
  /** What was given and what is allowed; never a secret. */
  message: string
}

/** Of more problems than this the rest is not told: nobody reads so many, and it would take time and space without end. */
export const maxProblems = 100

/** The first hundred, with a word about the rest. */
const bounded = (errors: readonly Problem[]): readonly Problem[] =>
  errors.length <= maxProblems ? errors : [...errors.slice(0, maxProblems), { path: '', message: 'and more' }]

const line = ({ path, message }: Problem) => path === '' ? message : `${path}: ${message}`

/** True for a path that is among others, or below one of them. */
const isWithin = (path: string, others: ReadonlySet<string>): boolean => {
  for (let end = path.length; end > 0; end--) {
    if ((end === path.length || path[end] === '.' || path[end] === '[') && others.has(path.slice(0, end))) return true
  }
  return false
}

/** What a first stage refused, a later one need not judge, with all that is in it. Problems of one stage all stay. */
export const gather = (...stages: Problem[][]): Problem[] => {
  const all: Problem[] = []
  for (const stage of stages) {
    const known = new Set(all.map(({ path }) => path))
    all.push(...stage.filter(({ path }) => path === '' || !isWithin(path, known)))
  }
  return [...new Map(all.map(problem => [`${problem.path}\n${problem.message}`, problem])).values()]
}

/** The problems as a list for people, each on a line of its own, not more than a hundred. */
export const linesOf = (errors: readonly Problem[]) => bounded(errors).map(error => `  - ${line(error)}`).join('\n')

/** A configuration that cannot be used, with everything that is wrong with it, or the first hundred problems and the words that there are more. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly errors: readonly Problem[]
  /** Where the configuration came from: a file's path, or the name of what gave it. */
  readonly source: string

  constructor (source: string, errors: readonly Problem[]) {
    super(`invalid configuration in ${source}\n${linesOf(errors)}`)
    this.source = source
    this.errors = Object.freeze(bounded(errors).map(error => Object.freeze({ ...error })))
  }
}

const howMany = (count: number): string => {
  if (count > maxProblems) return `more than ${maxProblems} errors`
  return count === 1 ? '1 error' : `${count} errors`
}

/** The text for people: how many errors, where, and each on a line of its own. Ends without a newline. */
export const formatConfigError = (error: ConfigError): string => `${howMany(error.errors.length)} in ${error.source}\n${linesOf(error.errors)}`
