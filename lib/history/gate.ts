import { failures, type Reason } from '../failure.ts'
import { counts, times } from './column.ts'

/** The figures of some steps, oldest first. */
export interface GateFigures {
  /** Requests whose head was read. */
  readonly requests: readonly number[]
  /** Requests that were refused before anybody was asked, by reason; a reason that did not occur is left out. */
  readonly refused: Readonly<Partial<Record<Reason, readonly number[]>>>
  /** The most that were admitted and not answered at the same time. */
  readonly inFlight: readonly number[]
  /** The most that the event loop was late, in ms, three digits. */
  readonly loopDelayMs: readonly number[]
}

/** The stages at which a request is refused before an upstream is asked. */
const refusing: ReadonlySet<string> = new Set(['admission', 'route', 'select'])

/** What was admitted and refused in each of the last steps: 10 kB. */
export class GateHistory {
  readonly #requests = counts()
  readonly #inFlight = counts()
  readonly #loopDelay = times()
  readonly #refused = new Map((Object.keys(failures) as Reason[]).filter((reason) => refusing.has(failures[reason].stage)).map((reason) => [reason, counts()]))

  begun (step: number): void {
    this.#requests.add(step)
  }

  ended (step: number, reason: Reason): void {
    this.#refused.get(reason)?.add(step)
  }

  inFlight (step: number, inFlight: number): void {
    this.#inFlight.raise(step, inFlight)
  }

  loopDelay (step: number, ms: number): void {
    this.#loopDelay.raise(step, ms)
  }

  begin (step: number): void {
    this.#requests.clear(step)
    this.#inFlight.clear(step)
    this.#loopDelay.clear(step)
    for (const column of this.#refused.values()) column.clear(step)
  }

  figures (first: number, last: number): GateFigures {
    const refused = Array.from(this.#refused, ([reason, column]) => [reason, column.slice(first, last)] as const)
    return {
      requests: this.#requests.slice(first, last),
      refused: Object.fromEntries(refused.filter(([, figures]) => figures.some((each) => each > 0))),
      inFlight: this.#inFlight.slice(first, last),
      loopDelayMs: this.#loopDelay.slice(first, last).map((ms) => Number(ms.toPrecision(3)))
    }
  }
}
