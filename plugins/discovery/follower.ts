import type { FastifyBaseLogger } from 'fastify'
import type { DiscoveryOptions } from '../../config/schema.ts'
import type { Clock } from '../../lib/clock.ts'
import { isSameSet, maxMembers, toSet, type DiscoveredUpstream, type MemberSet } from '../../lib/discovery/members.ts'
import type { UpstreamPools } from '../upstream-pools.ts'
import type { DiscoverySource } from './source.ts'
import type { DiscoveryEvent, DiscoveryView } from './view.ts'

export interface FollowerContext {
  pools: Pick<UpstreamPools, 'setMembers'>
  log: FastifyBaseLogger
  clock: Clock
  /** Called after the change is committed. */
  tell: (event: DiscoveryEvent) => void
}

type Trouble = NonNullable<DiscoveryView['lastError']>

const nobody: MemberSet = { members: [], ids: [], cut: 0 }

/**
 * One pool and its source: hands what the source says to the pool, and keeps the last good list. What the pool refuses it is given
 * again with the source's next word, at a refresh, and at each `apply`. Nothing that goes wrong here is thrown at the source.
 */
export class Follower {
  readonly pool: string
  readonly options: DiscoveryOptions
  /** Resolves when the source has said something for the first time, be it that it failed, or when it was stopped. */
  readonly heard: Promise<void>
  readonly #source: DiscoverySource
  readonly #context: FollowerContext
  #hear: () => void = () => {}
  #running = false
  /** What the pool shall have. */
  #wanted: MemberSet
  /** What the pool has taken. */
  #taken: MemberSet
  /** The pool is being given its members. */
  #giving = false
  #lastSuccess: { at: string, time: number } | null = null
  /** Why the source does not know its upstreams. */
  #failed: Trouble | null = null
  /** Why the pool has not taken what is wanted. */
  #refused: Trouble | null = null

  /** @param before the follower of another source of this pool, whose set stays until this one has given its first */
  constructor (pool: string, options: DiscoveryOptions, source: DiscoverySource, context: FollowerContext, before?: Follower) {
    this.pool = pool
    this.options = options
    this.#source = source
    this.#context = context
    this.#wanted = before === undefined ? nobody : before.#wanted
    this.#taken = before === undefined ? nobody : before.#taken
    this.heard = new Promise((resolve) => { this.#hear = resolve })
  }

  get view (): DiscoveryView {
    const { dns, file, source } = this.options
    const nextAt = new Date(this.#source.nextAt ?? Number.NaN)
    const lastError = this.#refused ?? this.#failed
    return Object.freeze({
      pool: this.pool,
      kind: dns !== undefined ? 'dns' : file !== undefined ? 'file' : 'source',
      from: dns?.name ?? file?.path ?? source ?? '',
      members: this.#taken.ids,
      lastSuccess: this.#lastSuccess?.at ?? null,
      ageMs: this.#lastSuccess === null ? null : Math.round(this.#context.clock() - this.#lastSuccess.time),
      lastError,
      nextAt: Number.isNaN(nextAt.getTime()) ? null : nextAt.toISOString(),
      stale: this.#lastSuccess === null || lastError !== null
    })
  }

  start (): void {
    this.#running = true
    try {
      this.#source.start(
        (members, incomplete) => { this.#hearing(() => { this.#report(members, incomplete) }) },
        (error) => { this.#hearing(() => { this.#fail(error) }) }
      )
    } catch (error) {
      this.#hearing(() => { this.#fail(error) })
    }
  }

  /** Ends the source. The members stay as they are. */
  async stop (): Promise<void> {
    this.#running = false
    this.#hear()
    await this.#source.stop()
  }

  refresh (): void {
    if (!this.#running) return
    this.#give()
    try {
      this.#source.refresh?.()
    } catch (error) {
      this.#hearing(() => { this.#fail(error) })
    }
  }

  /** Gives the pool its members again, which may have been made anew meanwhile. */
  apply (): void {
    if (this.#wanted.ids.length > 0 || this.#taken !== this.#wanted) this.#give(true)
  }

  /** Nothing is thrown at the source, whatever it says. */
  #hearing (word: () => void): void {
    if (!this.#running) return
    try {
      word()
    } catch (err) {
      this.#context.log.error({ err, pool: this.pool }, 'discovery_word_failed')
    }
    this.#hear()
  }

  #report (reported: readonly DiscoveredUpstream[], incomplete?: Error): void {
    let set: MemberSet
    try {
      set = toSet(reported)
    } catch (error) {
      return this.#fail(error)
    }
    if (set.ids.length === 0 && this.options.keep) return this.#fail(new Error('the source gives no upstreams'))
    const isNew = set.cut > 0 && this.#wanted.cut === 0
    this.#want(set)
    if (isNew) this.#tell({ type: 'discovery_cut', pool: this.pool, given: set.ids.length + set.cut, used: maxMembers, at: new Date().toISOString() })
    if (incomplete === undefined) this.#succeed()
    else this.#note(incomplete)
  }

  #succeed (): void {
    const troubled = this.#failed !== null
    this.#lastSuccess = { at: new Date().toISOString(), time: this.#context.clock() }
    this.#failed = null
    if (troubled) this.#recover()
  }

  #fail (error: unknown): void {
    const { keep } = this.options
    this.#note(error, keep ? this.#taken.ids.length : 0)
    if (keep) this.#give()
    else this.#want(nobody)
  }

  #note (error: unknown, keeping = this.#taken.ids.length): void {
    const first = this.#failed === null
    this.#failed = troubleOf(error)
    const { at, message } = this.#failed
    if (first) this.#tell({ type: 'discovery_failed', pool: this.pool, error: message, keeping, at })
  }

  #want (set: MemberSet): void {
    if (!isSameSet(set.members, this.#wanted.members)) this.#wanted = set
    else if (set.cut !== this.#wanted.cut) this.#wanted = { ...this.#wanted, cut: set.cut }
    this.#give()
  }

  /**
   * Gives the pool what is wanted, until that is what it has: listeners may bring the source to say more meanwhile.
   * @param again even if it was taken before
   */
  #give (again = false): void {
    if (this.#giving) return
    this.#giving = true
    try {
      for (let must = again; must || this.#taken !== this.#wanted || this.#refused !== null; must = false) {
        if (!this.#giveOnce(this.#wanted)) break
      }
    } finally {
      this.#giving = false
    }
  }

  /** True where the pool has taken it. */
  #giveOnce (set: MemberSet): boolean {
    try {
      this.#context.pools.setMembers(this.pool, set.members)
    } catch (error) {
      this.#refuse(error)
      return false
    }
    const before = this.#taken
    const troubled = this.#refused !== null
    this.#taken = set
    this.#refused = null
    if (!isSameSet(before.members, set.members)) this.#changed(before.ids, set.ids)
    if (troubled) this.#recover()
    return true
  }

  #changed (before: readonly string[], ids: readonly string[]): void {
    const [earlier, now] = [new Set(before), new Set(ids)]
    const added = ids.filter((id) => !earlier.has(id))
    const removed = before.filter((id) => !now.has(id))
    this.#tell({ type: 'discovery_changed', pool: this.pool, added, removed, members: ids.length, at: new Date().toISOString() })
  }

  #refuse (error: unknown): void {
    const first = this.#refused === null
    this.#refused = troubleOf(error)
    const { at, message } = this.#refused
    if (first) this.#tell({ type: 'discovery_refused', pool: this.pool, error: message, keeping: this.#taken.ids.length, at })
  }

  #recover (): void {
    if (this.#failed !== null || this.#refused !== null) return
    this.#tell({ type: 'discovery_recovered', pool: this.pool, members: this.#taken.ids.length, at: new Date().toISOString() })
  }

  #tell (event: DiscoveryEvent): void {
    const { type, at: _at, ...fields } = event
    this.#context.log[levels[type]](fields, type)
    this.#context.tell(Object.freeze(event))
  }
}

const levels = { discovery_changed: 'info', discovery_failed: 'warn', discovery_refused: 'error', discovery_recovered: 'info', discovery_cut: 'warn' } as const

/** A source of somebody else's may give anything as its error. */
function troubleOf (error: unknown): Trouble {
  const message = error instanceof Error ? error.message : typeof error === 'string' ? error : 'no reason is given'
  return Object.freeze({ at: new Date().toISOString(), message })
}
