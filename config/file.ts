import { closeSync, openSync, readSync } from 'node:fs'
import { isNode, isScalar, LineCounter, parseDocument, visit, type Document, type YAMLError } from 'yaml'
import { ConfigError, type Problem } from './error.ts'

/** Far above any real configuration. */
const maxBytes = 1048576

const tooDeep = 'is nested too deep'

const failures: Record<string, string> = {
  ENOENT: 'no such file',
  ENOTDIR: 'no such file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a directory',
  EMFILE: 'too many open files',
  ENAMETOOLONG: 'the name is too long'
}

/** Why a file could not be read, in words. */
export const fileFailure = (error: unknown): string => {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
  return failures[code] ?? code
}

/** In place of the parser's messages, which cite the document here, or speak to programmers. */
const messages: Record<string, string> = {
  TAG_RESOLVE_FAILED: 'a tag that is not known; text that starts with "!" needs quotes',
  BAD_DQ_ESCAPE: 'an escape that is not known; "\\" in double quotes is written "\\\\"',
  MULTIPLE_DOCS: 'a second document; there must be one'
}

const toProblem = (error: YAMLError, counter: LineCounter): Problem => {
  const { line, col } = counter.linePos(error.pos[0])
  // Behind a colon the parser cites the document, where a secret may stand.
  const message = messages[error.code] ?? error.message.replace(/(?<=\w): .*$/s, '')
  return { path: '', message: `line ${line}, column ${col}: ${message}` }
}

const aliasFailure = (error: unknown): string => {
  if (!(error instanceof ReferenceError)) return tooDeep
  return error.message.startsWith('Excessive') ? 'has aliases that expand to too much' : 'has an alias without an anchor before it'
}

const toPlain = (document: Document, source: string): unknown => {
  try {
    return document.toJS({ maxAliasCount: 100 })
  } catch (error) {
    throw new ConfigError(source, [{ path: '', message: aliasFailure(error) }])
  }
}

/**
 * Keys that stand twice in a mapping, and keys that are no text and would become one unseen. The parser's own search for duplicates
 * compares every key with every other: a minute for a megabyte of them.
 */
const badKeys = (document: Document, counter: LineCounter): Problem[] => {
  const problems: Problem[] = []
  const note = (node: unknown, message: string) => {
    const { line, col } = counter.linePos(isNode(node) ? node.range?.[0] ?? 0 : 0)
    problems.push({ path: '', message: `line ${line}, column ${col}: ${message}` })
  }
  visit(document, {
    Map (_, { items }) {
      const seen = new Set<string>()
      for (const { key } of items) {
        const name = isScalar(key) ? String(key.value) : null
        if (name === null) note(key, 'a key must be text')
        else if (seen.has(name)) note(key, `the key ${JSON.stringify(name.slice(0, 64))} stands twice in one mapping`)
        else seen.add(name)
      }
    }
  })
  return problems
}

/**
 * Reads YAML 1.2 (core schema: `off` and `no` are texts) or JSON, which is a part of it.
 * @throws ConfigError with the line and column of each syntax error
 */
export const parseText = (text: string, source: string): unknown => {
  const counter = new LineCounter()
  let problems: Problem[]
  let document: Document
  try {
    document = parseDocument(text, { version: '1.2', schema: 'core', merge: false, prettyErrors: false, strict: true, uniqueKeys: false, lineCounter: counter })
    // The parser catches its own stack overflow, once per level.
    if (document.errors.some(({ message }) => message.startsWith('Maximum call stack'))) throw new RangeError(tooDeep)
    problems = [...document.errors, ...document.warnings].map(error => toProblem(error, counter))
    problems = [...problems, ...badKeys(document, counter)]
  } catch {
    throw new ConfigError(source, [{ path: '', message: tooDeep }])
  }
  if (problems.length > 0) throw new ConfigError(source, problems)
  return toPlain(document, source)
}

/** Reads at most one byte more than a configuration may have: a device may have no end. */
const readBounded = (file: string): Buffer => {
  const bytes = Buffer.alloc(maxBytes + 1)
  const fd = openSync(file, 'r')
  try {
    let length = 0
    for (let read = -1; read !== 0 && length < bytes.length; length += read) read = readSync(fd, bytes, length, bytes.length - length, null)
    return bytes.subarray(0, length)
  } finally {
    closeSync(fd)
  }
}

/**
 * Reads a configuration file.
 * @throws ConfigError if it cannot be read, is no UTF-8 text, or has a syntax error
 */
export const readConfigFile = (file: string): unknown => {
  let bytes: Buffer
  try {
    bytes = readBounded(file)
  } catch (error) {
    throw new ConfigError(file, [{ path: '', message: `cannot be read: ${fileFailure(error)}` }])
  }
  if (bytes.length > maxBytes) throw new ConfigError(file, [{ path: '', message: `must be at most ${maxBytes} bytes, got more` }])
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new ConfigError(file, [{ path: '', message: 'must be UTF-8 text' }])
  }
  return parseText(text, file)
}
