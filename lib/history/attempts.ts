import type { Outcome } from '../failure.ts'
import { counts, times } from './column.ts'
import { TimeHistogram } from './histogram.ts'

/** The figures of some steps, oldest first. */
export interface AttemptFigures {
  /** Attempts that ended. */
  readonly requests: readonly number[]
  /** How they ended; the others were a success. */
  readonly failure: readonly number[]
  readonly cancelled: readonly number[]
  readonly ignored: readonly number[]
  /** Time to the head in ms, three digits; null where no head came. */
  readonly p50: ReadonlyArray<number | null>
  readonly p95: ReadonlyArray<number | null>
  readonly p99: ReadonlyArray<number | null>
  /** The most that were under way at the same time. */
  readonly inFlight: readonly number[]
}

/** What became of attempts in each of the last steps: 6 kB. */
export class AttemptHistory {
  readonly #requests = counts()
  readonly #ended = { failure: counts(), cancelled: counts(), ignored: counts() }
  readonly #inFlight = counts()
  readonly #p50 = times()
  readonly #p95 = times()
  readonly #p99 = times()
  readonly #heads = new TimeHistogram()
  /** Under way now, as far as it is known here. */
  open = 0

  /** @param inFlight under way now, this one included */
  begun (step: number, inFlight: number): void {
    this.#inFlight.raise(step, inFlight)
  }

  /** @param headMs time to the head; negative: there was none */
  ended (step: number, outcome: Outcome, headMs: number): void {
    this.#requests.add(step)
    if (outcome !== 'success') this.#ended[outcome].add(step)
    if (headMs >= 0) this.#heads.record(headMs)
  }

  /** Begins `step` behind the one that ran. */
  begin (step: number): void {
    for (const column of [this.#requests, this.#ended.failure, this.#ended.cancelled, this.#ended.ignored, this.#p50, this.#p95, this.#p99]) column.clear(step)
    this.#inFlight.put(step, this.open)
  }

  /** Ends the step that runs. */
  end (step: number): void {
    const heads = this.#heads
    if (heads.total === 0) return
    this.#p50.put(step, heads.quantile(0.5))
    this.#p95.put(step, heads.quantile(0.95))
    this.#p99.put(step, heads.quantile(0.99))
    heads.clear()
  }

  figures (first: number, last: number): AttemptFigures {
    const { failure, cancelled, ignored } = this.#ended
    return {
      requests: this.#requests.slice(first, last),
      failure: failure.slice(first, last),
      cancelled: cancelled.slice(first, last),
      ignored: ignored.slice(first, last),
      p50: this.#p50.slice(first, last).map(timeOf),
      p95: this.#p95.slice(first, last).map(timeOf),
      p99: this.#p99.slice(first, last).map(timeOf),
      inFlight: this.#inFlight.slice(first, last)
    }
  }
}

/** There are as many as there are buckets. */
const rounded = new Map<number, number>()

/** No time is 0: the shortest that is recorded is more. */
function timeOf (ms: number): number | null {
  if (ms === 0) return null
  const known = rounded.get(ms)
  if (known !== undefined) return known
  const short = Number(ms.toPrecision(3))
  rounded.set(ms, short)
  return short
}
