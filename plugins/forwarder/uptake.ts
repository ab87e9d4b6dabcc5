import type { Socket } from 'node:net'
import { earlyMs } from './pace.ts'
import { askUnacknowledged } from './unacknowledged.ts'

/** What Node's handle of a connection tells; a socket that is gone has none. */
interface HandledSocket extends Socket { _handle?: { bytesWritten: number, writeQueueSize: number } | null }

/** Into how many parts a limit is divided by looks. */
const looksPerLimit = 4

/**
 * Whether the other end of a connection takes anything of what is on its way to it, however slowly. A stream tells only when a
 * buffer has room again, and the system's are megabytes. So while nothing else tells it is looked at a few times within a limit.
 */
export class Uptake {
  /** Monotonic time at which something was last seen to have been taken; 0: it never was. */
  at = 0
  #taken = 0
  /** The system told. */
  #exact = false
  #misses = 0
  /** Monotonic time of the first of the looks that can be compared, and of the last comparison; 0: there was none. */
  #lookedSince = 0
  #comparedAt = 0
  #looking = false

  /**
   * Milliseconds until it is to be looked at again; less than `earlyMs`: the limit is due, and was looked at.
   * @param limitMs how long nothing may be taken
   * @param since monotonic time from which that counts, as far as it is known without a look
   */
  left (socket: Socket | null, limitMs: number, since: number, now: number): number {
    if (socket === null || socket.destroyed) return Math.max(since, this.at) + limitMs - now
    const nextMs = Math.max(1, limitMs / looksPerLimit)
    const left = Math.max(since, this.at, this.#lookedSince - 2 * nextMs) + limitMs - now
    if (left < earlyMs && (now - this.#comparedAt <= 2 * nextMs || left <= -limitMs)) return left
    if (!this.#looking) this.#look(socket)
    return left < earlyMs ? nextMs : Math.min(left, nextMs)
  }

  #look (socket: HandledSocket): void {
    this.#looking = true
    const handle = socket['_handle']
    const given = handle === null || handle === undefined ? 0 : handle.bytesWritten - handle.writeQueueSize
    askUnacknowledged(socket, (bytes) => {
      this.#looking = false
      const exact = bytes >= 0
      // A table that changes while it is read may lack a line.
      if (!exact && this.#exact && ++this.#misses < looksPerLimit) return
      this.#misses = 0
      const now = performance.now()
      const taken = exact ? given - bytes : given
      if (this.#lookedSince === 0 || exact !== this.#exact) {
        this.#lookedSince = now
      } else {
        this.#comparedAt = now
        if (taken !== this.#taken) this.at = now
      }
      this.#exact = exact
      this.#taken = taken
    })
  }
}
