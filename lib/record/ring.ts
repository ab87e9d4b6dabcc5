import type { Reason } from '../failure.ts'
import type { Kept } from './types.ts'

/** Text that several records share, counted once for as long as one of them is kept. */
export class Note {
  readonly text: string
  /** Monotonic ms: when it was found to be so for the last time. */
  asOf: number
  /** Records that have it. */
  refs = 0

  constructor (text: string, asOf: number) {
    this.text = text
    this.asOf = asOf
  }
}

export interface Entry {
  readonly id: string
  /** Epoch ms. */
  readonly at: number
  readonly kept: Kept
  readonly reason: Reason | null
  /** Of the answer; 0: there was none. */
  readonly status: number
  readonly pool: string | null
  /** JSON. */
  readonly line: string
  readonly note: Note | null
  /** What it takes, in bytes; the ring's own. */
  size?: number
}

/** What an entry takes beside its text: itself, its place in the ring and in the index, its id; what a note takes beside its text. */
const entryBytes = 320
const noteBytes = 96

const isWide = (text: string): boolean => /[^\0-\xff]/.test(text)

/** Bytes of a text in V8: one for each character, or two where one of them is not Latin-1. */
const bytesOf = (text: string): number => text.length * (isWide(text) ? 2 : 1)
const sizeOf = ({ id, line }: Entry): number => entryBytes + id.length + bytesOf(line)
const sizeOfNote = ({ text }: Note): number => noteBytes + bytesOf(text)

/**
 * Records in the order of their ends, bounded in bytes: the oldest ones make room. Texts, not objects, so that thousands of them are nothing to
 * the garbage collector, and their size is known.
 */
export class RecordRing {
  readonly #byId = new Map<string, Entry>()
  /** Those from `#head` on are kept. */
  #entries: Entry[] = []
  #head = 0
  readonly #onEvict: (id: string) => void
  #maxBytes: number
  #bytes = 0

  /** @param onEvict told of each id that makes room */
  constructor (maxBytes: number, onEvict: (id: string) => void) {
    this.#maxBytes = maxBytes
    this.#onEvict = onEvict
  }

  get bytes (): number { return this.#bytes }
  get size (): number { return this.#entries.length - this.#head }
  /** Epoch ms of the oldest one; null: there is none. */
  get oldestAt (): number | null { return this.#entries[this.#head]?.at ?? null }

  /** Adds a record. One of the same id stays until it makes room, but is not found by its id any more. */
  add (entry: Entry): void {
    this.#bytes += entry.size = sizeOf(entry)
    const { note } = entry
    if (note !== null && note.refs++ === 0) this.#bytes += sizeOfNote(note)
    this.#entries.push(entry)
    this.#byId.set(entry.id, entry)
    this.#makeRoom()
  }

  /** Whether this note would leave room for other records. */
  takes (note: Note): boolean {
    return note.refs > 0 || sizeOfNote(note) <= this.#maxBytes / 4
  }

  get (id: string): Entry | undefined { return this.#byId.get(id) }

  /** The newest ones first. */
  newest (): Entry[] { return this.#entries.slice(this.#head).toReversed() }

  setMaxBytes (maxBytes: number): void {
    this.#maxBytes = maxBytes
    this.#makeRoom()
  }

  clear (): void {
    for (; this.size > 0;) this.#drop()
    this.#compact()
  }

  #makeRoom (): void {
    for (; this.#bytes > this.#maxBytes && this.size > 0;) this.#drop()
    if (this.#head > 1024 && this.#head * 2 > this.#entries.length) this.#compact()
  }

  #drop (): void {
    const entry = this.#entries[this.#head++] as Entry
    const { id, note } = entry
    this.#bytes -= entry.size as number
    if (note !== null && --note.refs === 0) this.#bytes -= sizeOfNote(note)
    if (this.#byId.get(id) !== entry) return
    this.#byId.delete(id)
    this.#onEvict(id)
  }

  #compact (): void {
    this.#entries = this.#entries.slice(this.#head)
    this.#head = 0
  }
}
