import type { TimeoutOptions } from '../../config/schema.ts'
import { earlyMs, Pace } from './pace.ts'
import { afterReading, stallMs, wasStalled } from '../exact-timer.ts'

/** Whose time is limited. */
export interface Limited {
  /** True once nothing is limited any more but the way of the last bytes to the client. */
  readonly over: boolean
  /** True for a moment in which nobody is judged: what has come is about to be handed up. */
  readonly handingUp: boolean
  /** Milliseconds until the limit of the present phase is due; Infinity: it has none. */
  phaseLeft (now: number): number
  /**
   * A limit is due. That of the whole exchange is told once.
   * @param total it is that of the whole exchange
   * @param stalled our own loop stood still meanwhile
   */
  expired (total: boolean, stalled: boolean): void
  /** All is over but for the client's taking it: milliseconds until the limit for that is due; Infinity: it has none, or has taken all. */
  tailLeft (now: number): number
  /** That limit is due. */
  tailExpired (): void
}

/** One timer for all limits of an exchange: it wakes at the earliest moment at which one could be due, and then looks. */
export class Deadline {
  readonly #owner: Limited
  /** The shortest of the limits, in ms. */
  #step: number
  /** Monotonic time at which all has to be done. */
  #end: number
  #timer: NodeJS.Timeout | null = null
  #timerDue = 0

  /** @param receivedAt monotonic time from which the limit of the whole exchange counts */
  constructor (owner: Limited, limits: TimeoutOptions, receivedAt: number) {
    const { headersMs, bodyIdleMs, totalMs } = limits
    this.#owner = owner
    this.#step = Math.min(headersMs || Infinity, bodyIdleMs || Infinity, totalMs || Infinity, Pace.shortest(limits))
    this.#end = totalMs === 0 ? Infinity : receivedAt + totalMs
  }

  /** What is left of the whole exchange, in ms; Infinity: it has no limit. */
  left (now: number): number { return this.#end - now }

  start (now: number): void {
    if (this.#step !== Infinity) this.#arm(now, Math.max(1, Math.min(this.#step, this.#end - now)))
  }

  /** A phase that begins now, or will, has a limit of its own; 0: it has none. */
  within (now: number, ms: number): void {
    if (ms === 0 || ms >= this.#step) return
    this.#step = ms
    if (this.#timer !== null && this.#timerDue <= now + ms) return
    this.stop()
    this.#arm(now, Math.max(1, ms))
  }

  /** All is over, and what is left is the client's to take. */
  rest (): void {
    if (this.#timer === null && this.#step !== Infinity) this.#arm(performance.now(), this.#step)
  }

  stop (): void {
    if (this.#timer === null) return
    clearTimeout(this.#timer)
    this.#timer = null
  }

  /** From now on only the phases are limited: an event stream has no end to wait for. */
  endless (): void {
    this.#end = Infinity
  }

  fired (): void {
    this.#timer = null
    const late = performance.now() - this.#timerDue
    const stalled = wasStalled(late, this.#step)
    if (late < stallMs && !this.#isDue()) return this.#judge(stalled)
    // What has arrived in time is read before anybody is blamed: our own loop may have stood still, now or a while ago.
    afterReading(() => { this.#judge(stalled) })
  }

  /** Whether somebody would be judged now. */
  #isDue (): boolean {
    const owner = this.#owner
    if (owner.over || owner.handingUp) return false
    const now = performance.now()
    return this.#end - now < earlyMs || owner.phaseLeft(now) < earlyMs
  }

  #arm (now: number, ms: number): void {
    this.#timerDue = now + ms
    this.#timer = setTimeout(onTimer, ms, this)
  }

  #judge (stalled: boolean): void {
    const owner = this.#owner
    const now = performance.now()
    if (owner.over) return this.#judgeTail(now)
    if (owner.handingUp) return this.#arm(now, this.#step)
    const totalLeft = this.#end - now
    if (totalLeft < earlyMs) return owner.expired(true, stalled)
    const phaseLeft = owner.phaseLeft(now)
    if (phaseLeft >= earlyMs) return this.#arm(now, Math.ceil(Math.min(this.#step, phaseLeft, totalLeft)))
    owner.expired(false, stalled)
    // Another attempt may have taken over.
    if (!owner.over) this.#arm(now, Math.ceil(Math.max(1, Math.min(this.#step, totalLeft))))
  }

  #judgeTail (now: number): void {
    const left = this.#owner.tailLeft(now)
    if (left === Infinity) return
    if (left >= earlyMs) this.#arm(now, Math.ceil(Math.min(this.#step, left)))
    else this.#owner.tailExpired()
  }
}

function onTimer (deadline: Deadline): void { deadline.fired() }
