import type { Exchange } from '../../lib/exchange.ts'
import type { Outcome, Reason } from '../../lib/failure.ts'
import type { Attempt } from './attempt.ts'

/** Who an attempt works for. Each call names the attempt, as there may be two. */
export interface AttemptOwner {
  /** null: nobody's, as a copy. */
  readonly exchange: Exchange | null
  /** A final response's head: `attempt.answer` is there. The body follows through `bodyChunk` and `bodyEnd`. */
  responseHead (attempt: Attempt): void
  informational (status: number, rawFields: Buffer[]): void
  /** False when the upstream has to wait. */
  bodyChunk (attempt: Attempt, chunk: Buffer): boolean
  bodyEnd (attempt: Attempt): void
  /** The attempt is over without a whole answer. */
  attemptFailed (attempt: Attempt, reason: Reason, outcome: Outcome, error: Error): void
}
