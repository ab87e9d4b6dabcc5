import { nextSerial } from './serial.ts'

const free = 0
const late = Number.POSITIVE_INFINITY
const maxLate = 64

interface Probe {
  serial: number
  /** When its lease ends; `late` once it counts no more. */
  lease: number
}

/** What a probe's serial stands for: nothing that is out, one that no longer counts, one of the running batch. */
export type ProbeStanding = 'unknown' | 'late' | 'live'

/**
 * The bounded batch of a half-open circuit. At most `size` results are wanted and at most so many are out at a time; a probe
 * that ended neutrally, or was not settled within its lease, gives its place back and leaves the target as it is.
 */
export class Probes {
  /** How many results the batch wants. */
  size = 0
  granted = 0
  /** Out and within their lease. */
  inFlight = 0
  settled = 0
  failed = 0
  expired = 0
  #serial = 0
  /** The probes that are out, oldest first. */
  readonly #out: Probe[] = []

  /** Begins a batch. Probes that are still out belong to none any more. */
  begin (size: number): void {
    this.abandon()
    this.size = size
    this.granted = this.settled = this.failed = this.expired = 0
  }

  /** Ends the batch: whatever is out settles without effect. */
  abandon (): void {
    for (const probe of this.#out) probe.lease = late
    this.inFlight = 0
  }

  /** Whether a probe could go out at `now`; pure. */
  hasPlace (now: number): boolean {
    let taken = this.settled
    for (const { lease } of this.#out) if (lease !== late && now < lease) taken++
    return taken < this.size
  }

  /** Whether the result of a probe would count at `now`: it is out, of the running batch, and within its lease. */
  isLive (serial: number, now: number): boolean {
    return this.#out.some(probe => probe.serial === serial && probe.lease !== late && now < probe.lease)
  }

  /** A new probe's serial (> 0), leased until `lease`; 0 if every place is taken. */
  grant (lease: number): number {
    if (this.settled + this.inFlight >= this.size) return free
    this.#serial = nextSerial(this.#serial)
    this.#out.push({ serial: this.#serial, lease })
    this.granted++
    this.inFlight++
    return this.#serial
  }

  /** Takes a probe back; a live one's place is free again. */
  take (serial: number): ProbeStanding {
    const at = this.#out.findIndex(probe => probe.serial === serial)
    const [probe] = at === -1 ? [] : this.#out.splice(at, 1)
    if (probe === undefined) return 'unknown'
    if (probe.lease === late) return 'late'
    this.inFlight--
    return 'live'
  }

  /** Counts the result of a live probe that was taken back. */
  count (failed: boolean): void {
    this.settled++
    if (failed) this.failed++
  }

  /** Ends the leases that are over at `now`. */
  expire (now: number): void {
    for (const probe of this.#out) {
      if (probe.lease === late || now < probe.lease) continue
      probe.lease = late
      this.inFlight--
      this.expired++
    }
  }

  /** Forgets the oldest late probes beyond a bound (a caller that never settles must not fill memory); returns how many. */
  forget (): number {
    const excess = Math.max(0, this.#out.length - this.inFlight - maxLate)
    for (let left = excess; left > 0; left--) this.#out.splice(this.#out.findIndex(probe => probe.lease === late), 1)
    return excess
  }

  /** When the next lease ends; Infinity without one. */
  nextLease (): number {
    return this.#out.reduce((earliest, { lease }) => Math.min(earliest, lease), late)
  }

  /**
   * What the batch says, as soon as no further result can change it: true = passed, false = failed, null = undecided.
   * It fails when failures / size exceeds the ratio, or when all of it failed: a ratio of 1 could never be exceeded.
   * @param more results that are thought to come, all of them failures or all of them not
   */
  verdict (failureRatio: number, more = 0, failing = false): boolean | null {
    const fails = (failures: number) => failures / this.size > failureRatio || failures === this.size
    const failed = failing ? this.failed + more : this.failed
    if (fails(failed)) return false
    return fails(failed + this.size - this.settled - more) ? null : true
  }
}

/** Stands for the batch of every breaker that has not been half-open yet; it never begins one. */
export const noProbes = new Probes()
