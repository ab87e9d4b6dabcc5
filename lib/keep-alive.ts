/** A connection that was idle for less than this, in ms, was not closed for being idle. */
const leastMs = 50
/** Ends within this time, in ms, are one event: a restart ends connections of all ages at once. */
const burstMs = 100
/** So many events in a row must agree. */
const needed = 3
/** They agree when the longest time is no more than this share, and a little, above the shortest. */
const spread = 1.25
const slackMs = 20
/** The part of the shortest time for which a connection is used again: the rest is for the way there. */
const margin = 0.8
/** Forgotten after this time without a further event, in ms: the upstream may have been told to wait longer. */
const forgetMs = 600000

/** Connections that ended at about the same time. */
interface Event {
  shortest: number
  longest: number
  at: number
}

/**
 * Learns how long an upstream keeps an idle connection, from the times after which it ended one: a request that is sent in that very
 * moment is lost. Ends that come together count once, and not at all where their times differ, so that a restart of the upstream
 * teaches nothing. Times are monotonic milliseconds.
 */
export class IdleLimit {
  #events: Event[] = []
  #limitMs = 0
  /** The latest event may not be over yet, or has not been looked at since. */
  #pending = false

  /** The upstream ended a connection that had been idle for `idleMs`, or had ended it when it was used again after that time. */
  ended (idleMs: number, now: number): void {
    if (!(idleMs >= leastMs)) return
    this.#settle(now)
    const last = this.#events.at(-1)
    if (last !== undefined && now - last.at <= burstMs) {
      last.shortest = Math.min(last.shortest, idleMs)
      last.longest = Math.max(last.longest, idleMs)
      last.at = now
    } else {
      this.#events.push({ shortest: idleMs, longest: idleMs, at: now })
      if (this.#events.length > needed) this.#events.shift()
    }
    this.#pending = true
  }

  /** How long a connection may have been idle to be used again, in ms; 0: nothing is known. */
  limitMs (now: number): number {
    this.#settle(now)
    return this.#limitMs
  }

  /** False: `limitMs` would say 0, whatever the time is. */
  get mayKnow (): boolean { return this.#limitMs !== 0 || (this.#pending && this.#events.length === needed) }

  /** Draws the conclusions of what is over. */
  #settle (now: number): void {
    const last = this.#events.at(-1)
    if (last === undefined) return
    if (now - last.at >= forgetMs) {
      this.#events = []
      this.#limitMs = 0
    } else if (this.#pending && now - last.at > burstMs) {
      this.#pending = false
      this.#learn()
    }
  }

  #learn (): void {
    if (this.#events.length < needed) return
    const shortest = Math.min(...this.#events.map((event) => event.shortest))
    const longest = Math.max(...this.#events.map((event) => event.longest))
    if (longest <= shortest * spread + slackMs) this.#limitMs = Math.floor(shortest * margin)
  }
}
