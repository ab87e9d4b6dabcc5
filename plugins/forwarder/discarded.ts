import type { Answer } from './answer.ts'
import type { Attempt } from './attempt.ts'
import type { AttemptOwner } from './owner.ts'
import { exactTimer } from '../exact-timer.ts'

/** So much of an answer that nobody wants is read for the sake of its connection, in bytes, and for so long, in ms. */
const maxBytes = 65536
const maxMs = 1000

/**
 * Gives up an answer whose head has come: the rest of a small one is read and dropped, so that its connection can be used again; a
 * large or a slow one ends with its connection. It counts as its status says.
 */
export function discard (attempt: Attempt): void {
  const answer = attempt.answer as Answer
  attempt.settle(answer.failed ? 'failure' : 'success', performance.now())
  if (attempt.stage === 'done') return
  if (answer.bytes > maxBytes || Number(answer.field('content-length') ?? 0) > maxBytes) return attempt.cancel('ignored')
  attempt.owner = new Drain(attempt)
  attempt.resumeBody()
}

class Drain implements AttemptOwner {
  readonly exchange = null
  readonly #stop: () => void
  #left: number

  constructor (attempt: Attempt) {
    this.#left = maxBytes - (attempt.answer as Answer).bytes
    this.#stop = exactTimer(maxMs, () => { attempt.cancel('ignored') })
  }

  responseHead (): void {}
  informational (): void {}

  bodyChunk (attempt: Attempt, chunk: Buffer): boolean {
    this.#left -= chunk.length
    if (this.#left >= 0) return true
    this.#stop()
    attempt.cancel('ignored')
    return true
  }

  bodyEnd (): void { this.#stop() }
  attemptFailed (): void { this.#stop() }
}
