import type { Clock } from '../../lib/clock.ts'
import { causeOfError, passedBy, stallExcuses, type CheckCause, type CheckStage } from '../../lib/health/cause.ts'
import type { CheckOptions } from '../../lib/health/options.ts'
import type { CheckTarget } from '../../lib/health/target.ts'
import type { Upstream } from '../upstream-pools.ts'
import { Deadline } from './deadline.ts'

export interface Verdict {
  /** null: the check says nothing about the upstream. */
  passed: boolean | null
  /** The status of the answer, or null where none came. */
  status: number | null
  cause: CheckCause
  /** How long the check took. */
  ms: number
  /** What lies behind a cause that is an error. */
  error: Error | null
}

/** How one upstream is checked. */
export interface Checker {
  /** One check. Never rejects. Call it only when the one before has ended. */
  run (): Promise<Verdict>
  /** Ends a running check as `stopped`, and closes the connection. */
  destroy (): void
}

/** What is checked, how, and by which clock. */
export interface Subject {
  readonly url: Upstream['url']
  /** What connections are made with. */
  readonly settings: ReturnType<Upstream['connector']>
  readonly target: CheckTarget
  /** What is spoken to it. */
  readonly http2: Upstream['http2']
  readonly options: CheckOptions
  /** How long an idle connection is kept. */
  readonly keepAliveMs: number
  readonly clock: Clock
}

/** One check under way. It ends once, by whatever comes first; its time limit runs from the start. */
export class Check {
  readonly verdict: Promise<Verdict>
  /** The status of the answer, once its head has come. */
  status: number | null = null
  readonly #subject: Subject
  readonly #startedAt: number
  readonly #deadline: Deadline
  readonly #onEnd: (clean: boolean) => void
  #resolve: (verdict: Verdict) => void = () => {}
  #ended = false

  /** @param onEnd told whether the connection may be used again */
  constructor (subject: Subject, onEnd: (clean: boolean) => void) {
    this.#subject = subject
    this.#startedAt = subject.clock()
    this.#onEnd = onEnd
    this.verdict = new Promise((resolve) => { this.#resolve = resolve })
    this.#deadline = new Deadline(subject.options.timeoutMs, subject.clock, () => { this.end('timeout', false) })
  }

  get ended (): boolean { return this.#ended }

  /** The answer has a status outside the range that passes. */
  get statusFails (): boolean {
    const { statuses: [lowest = 200, highest = 299] } = this.#subject.options
    return this.status !== null && (this.status < lowest || this.status > highest)
  }

  /** A status that does not pass decides, however the check ended. */
  end (cause: CheckCause, clean: boolean, error: Error | null = null): void {
    if (this.#ended) return
    this.#ended = true
    this.#deadline.cancel()
    this.#onEnd(clean)
    let decided = cause
    if (this.statusFails && passedBy(cause) !== null) decided = `status_${this.status as number}`
    else if (stallExcuses(cause) && this.#deadline.stalledMs >= this.#subject.options.timeoutMs) decided = 'event_loop_stall'
    const { clock } = this.#subject
    this.#resolve({ passed: passedBy(decided), status: this.status, cause: decided, ms: clock() - this.#startedAt, error })
  }

  fail (error: Error, stage: CheckStage): void {
    this.end(causeOf(error, stage, this.#subject), false, error)
  }
}

/** The cause that an error of the subject's check stands for. */
export function causeOf (error: Error, stage: CheckStage, { url }: Subject): ReturnType<typeof causeOfError> {
  const { syscall } = error as NodeJS.ErrnoException
  return causeOfError({ name: error.name, code: codeOf(error), syscall: syscall ?? '', message: error.message, stage, secure: url.secure, unix: url.socketPath !== null })
}

export const codeOf = (error: Error): string => (error as NodeJS.ErrnoException).code ?? ''
