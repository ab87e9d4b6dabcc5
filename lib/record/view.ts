import { candidatesOf } from './candidates.ts'
import { explanationOf } from './explanation.ts'
import { unpack } from './pack.ts'
import type { Entry, Note } from './ring.ts'
import type { PoolNote, RequestRecord } from './types.ts'

/** Notes that are kept as they were read: records of one time have the same few, and all of a ring would take many times its memory. */
const mostNotes = 32

/** Makes of what is stored what is shown. A note that records beside each other share is read once. */
export class RecordReader {
  readonly #iso: (epochMs: number) => string
  readonly #notes = new Map<Note, PoolNote>()

  /** @param iso writes epoch ms as ISO 8601 */
  constructor (iso: (epochMs: number) => string) {
    this.#iso = iso
  }

  read ({ line: text, note, at }: Entry): RequestRecord {
    const line = unpack(text)
    const { requestId, used: _used, passed: _passed, lookedMs: _lookedMs, ...rest } = line
    const pool = note === null ? null : this.#noteOf(note)
    const facts = {
      requestId,
      at: this.#iso(at),
      ...rest,
      panic: pool?.panic ?? false,
      candidates: pool === null ? [] : candidatesOf(pool, line, at, this.#iso)
    }
    return { ...facts, explanation: explanationOf(facts) }
  }

  #noteOf (note: Note): PoolNote {
    let read = this.#notes.get(note)
    if (read !== undefined) return read
    if (this.#notes.size >= mostNotes) this.#notes.clear()
    this.#notes.set(note, read = JSON.parse(note.text) as PoolNote)
    return read
  }
}
