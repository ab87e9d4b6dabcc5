import { isAlias, isMap, isNode, isScalar, isSeq, type LineCounter } from 'yaml'
import { maxProblems, type Problem } from './error.ts'

/** More values than a configuration may have. */
const maxExpanded = 100000

/**
 * Makes plain data of a parsed document. The parser's own way looks for each alias's anchor from the start of the document, and
 * compares every key with every other: a minute for a megabyte of either.
 */
export class PlainMaker {
  /** Keys that stand twice in a mapping, keys that are no text and would become one unseen, and aliases of nothing. */
  readonly problems: Problem[] = []
  readonly #counter: LineCounter
  /** What each anchor stands for, and how many values that is. */
  readonly #anchors = new Map<string, { value: unknown, size: number }>()
  #size = 0

  constructor (counter: LineCounter) {
    this.#counter = counter
  }

  /** Goes as deep as the document does. @throws RangeError when its aliases stand for too much */
  make (node: unknown): unknown {
    if (isAlias(node)) return this.#alias(node.source)
    const before = this.#size++
    const value = isMap(node) ? {} : isSeq(node) ? [] : isScalar(node) ? node.value : null
    const anchored = { value, size: 1 }
    // Before what is in it, which may have an alias of it.
    if (isNode(node) && 'anchor' in node && node.anchor !== undefined) this.#anchors.set(node.anchor, anchored)
    if (isMap(node)) for (const { key, value: member } of node.items) this.#member(value as object, key, member)
    else if (isSeq(node)) for (const item of node.items) (value as unknown[]).push(this.make(item))
    anchored.size = this.#size - before
    return value
  }

  #alias (name: string): unknown {
    const found = this.#anchors.get(name)
    if (found === undefined) {
      this.#note({ path: '', message: 'has an alias without an anchor before it' })
      return null
    }
    this.#size += found.size
    if (this.#size > maxExpanded) throw new RangeError('has aliases that expand to too much')
    return found.value
  }

  #member (mapping: object, key: unknown, member: unknown): void {
    if (!isScalar(key)) return this.#bad(key, 'a key must be text')
    const name = String(this.make(key) ?? '')
    if (Object.hasOwn(mapping, name)) this.#bad(key, `the key ${JSON.stringify(name.slice(0, 64))} stands twice in one mapping`)
    // Not by assignment, which would make `__proto__` another thing than a key.
    Object.defineProperty(mapping, name, { value: this.make(member), enumerable: true, configurable: true, writable: true })
  }

  #bad (node: unknown, message: string): void {
    const { line, col } = this.#counter.linePos(isNode(node) ? node.range?.[0] ?? 0 : 0)
    this.#note({ path: '', message: `line ${line}, column ${col}: ${message}` })
  }

  #note (problem: Problem): void {
    if (this.problems.length <= maxProblems) this.problems.push(problem)
  }
}
