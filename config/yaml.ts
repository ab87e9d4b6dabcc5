import { Composer, Lexer, LineCounter, Parser, type Document, type YAMLError } from 'yaml'
import { ConfigError, maxProblems, type Problem } from './error.ts'
import { PlainMaker } from './plain.ts'

/**
 * A configuration has less than 32 levels. What makes nodes of the parser's tokens calls itself for each level: a thousand of them
 * overflow the stack, and where that happens in the midst of a regular expression, V8 ends the process.
 */
export const maxDepth = 200

/** Words, signs, spaces and line breaks; about a second. A megabyte of lines as people write them has fewer. */
const maxLexemes = 300000

/** In place of the parser's messages, which cite the document here, or speak to programmers. */
const messages: Record<string, string> = {
  TAG_RESOLVE_FAILED: 'a tag that is not known; text that starts with "!" needs quotes',
  BAD_DQ_ESCAPE: 'an escape that is not known; "\\" in double quotes is written "\\\\"'
}

/** A variable between braces without quotes: its own brace ends the mapping, and errors behind it are only what follows from that. */
const isBareVariable = ({ pos: [at] }: YAMLError, text: string): boolean => text.startsWith('${', at - 1)

const toProblem = (error: YAMLError, counter: LineCounter, text: string): Problem => {
  const { line, col } = counter.linePos(error.pos[0])
  if (isBareVariable(error, text)) return { path: '', message: `line ${line}, column ${col - 1}: \${...} between { } or [ ] needs quotes` }
  // Behind a colon the parser cites the document, where a secret may stand.
  const message = messages[error.code] ?? error.message.replace(/(?<=\w): .*$/s, '')
  return { path: '', message: `line ${line}, column ${col}: ${message}` }
}

/** The first document, and where a second one begins. */
interface Composed {
  document: Document.Parsed
  second: number | null
}

/** @throws RangeError for a text that would take too much stack or time */
const compose = (text: string, counter: LineCounter): Composed => {
  const parser = new Parser(counter.addNewLine)
  const composer = new Composer({ version: '1.2', schema: 'core', merge: false, prettyErrors: false, strict: true, uniqueKeys: false })
  const documents: Document.Parsed[] = []
  let lexemes = 0
  let errors = 0
  const enough = () => documents.length > 1 || errors > maxProblems
  const take = (tokens: ReturnType<Parser['next']>): void => {
    for (const token of tokens) {
      if (token.type === 'error') errors++
      for (const document of composer.next(token)) documents.push(document)
      if (enough()) break
    }
  }
  counter.addNewLine(0)
  for (const lexeme of new Lexer().lex(text)) {
    if (++lexemes > maxLexemes) throw new RangeError(`must be at most ${maxLexemes} words and signs of YAML, got more; JSON may have more`)
    take(parser.next(lexeme))
    // What is open at this place, whichever way it was written.
    if (parser.stack.length > maxDepth) throw new RangeError('is nested too deep')
    if (enough()) break
  }
  if (!enough()) take(parser.end())
  for (const document of composer.end(true, text.length)) documents.push(document)
  const [document, other] = documents
  return { document: document!, second: other === undefined ? null : other.range[0] }
}

/** Without stack traces, which nobody sees and which take most of the time of an error. */
const untraced = <T>(action: () => T): T => {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return action()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

/**
 * Reads YAML 1.2 (core schema: `off` and `no` are texts).
 * @throws ConfigError with the line and column of each syntax error, up to a hundred
 */
export const parseYaml = (text: string, source: string): unknown => {
  const counter = new LineCounter()
  try {
    const { document, second } = untraced(() => compose(text, counter))
    const maker = new PlainMaker(counter)
    const value = maker.make(document.contents)
    const found = [...document.errors, ...document.warnings]
    const bare = found.findIndex(error => isBareVariable(error, text))
    const errors = found.slice(0, bare === -1 ? maxProblems + 1 : bare + 1)
    const problems = [...errors.map(error => toProblem(error, counter, text)), ...maker.problems]
    if (second !== null) {
      const { line, col } = counter.linePos(second)
      problems.push({ path: '', message: `line ${line}, column ${col}: a second document; there must be one` })
    }
    if (problems.length > 0) throw new ConfigError(source, problems)
    return value
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new ConfigError(source, [{ path: '', message: error.message }])
  }
}
