/** One event: what happened, when (ISO 8601), and its number in the journal. Frozen, through and through. */
export interface JournalEvent {
  readonly seq: number
  readonly at: string
  readonly type: string
  readonly [field: string]: unknown
}

/** What is kept after a sequence number, oldest first. */
export interface JournalPage {
  readonly events: readonly JournalEvent[]
  /** Number of the oldest event that is kept; `lastSeq + 1` while none is. Asked for what came after an earlier one, those before it are lost. */
  readonly firstSeq: number
  /** Number of the newest event; 0 before the first. */
  readonly lastSeq: number
}

/** The last events in the order in which they were appended, numbered from 1 without gaps. Bounded: the oldest one makes room. */
export class Journal {
  readonly capacity: number
  readonly #ring: JournalEvent[] = []
  #lastSeq = 0

  /**
   * @param capacity how many events are kept, 1 .. 1000000
   * @throws RangeError for any other capacity
   */
  constructor (capacity = 1000) {
    if (!Number.isInteger(capacity) || capacity < 1 || capacity > 1000000) {
      throw new RangeError(`the capacity of a journal must be a whole number from 1 to 1000000, got ${capacity}`)
    }
    this.capacity = capacity
  }

  get lastSeq (): number {
    return this.#lastSeq
  }

  get firstSeq (): number {
    return this.#lastSeq - this.#ring.length + 1
  }

  /**
   * Adds an event.
   * @param at when it happened, ISO 8601
   * @param fields plain data; copied, as JSON says it. `seq`, `at` and `type` among them are passed over.
   * @throws RangeError for fields that hold themselves
   */
  append (type: string, at: string, fields: Readonly<Record<string, unknown>> = {}): JournalEvent {
    const { seq: _seq, at: _at, type: _type, ...own } = fields
    const event = frozenCopy({ seq: this.#lastSeq + 1, at, type, ...own }) as JournalEvent
    this.#ring[this.#lastSeq % this.capacity] = event
    this.#lastSeq++
    return event
  }

  /**
   * The events after `seq`, at most `limit` of them: the oldest first, so that the next page follows the last one of this. A number
   * that has not been given out yet is taken for one of an earlier run of the process: everything that is kept came after it.
   */
  since (seq: number, limit: number = this.capacity): JournalPage {
    const { firstSeq, lastSeq } = this
    const from = seq > lastSeq ? firstSeq : Math.max(seq + 1, firstSeq)
    const events: JournalEvent[] = []
    for (let next = from; next <= lastSeq && events.length < limit; next++) {
      events.push(this.#ring[(next - 1) % this.capacity] as JournalEvent)
    }
    return Object.freeze({ events: Object.freeze(events), firstSeq, lastSeq })
  }
}

/**
 * A copy of plain data that nobody can change any more, as JSON says it. What JSON cannot say would spoil every page and stream that has the
 * event: a BigInt becomes text, and a function is left out.
 * @throws RangeError for data that holds itself
 */
function frozenCopy (value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'function') return undefined
  if (typeof value !== 'object' || value === null) return value
  if (isDate(value)) return value.toJSON()
  if (Array.isArray(value)) return Object.freeze(value.map(frozenCopy))
  return Object.freeze(Object.fromEntries(Object.entries(value).map(([key, each]) => [key, frozenCopy(each)])))
}

const isDate = (value: object): value is { toJSON (): string | null } => Object.prototype.toString.call(value) === '[object Date]'
