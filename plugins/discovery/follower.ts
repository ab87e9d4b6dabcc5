import type { FastifyBaseLogger } from 'fastify'
import type { DiscoveryOptions } from '../../config/schema.ts'
import type { Clock } from '../../lib/clock.ts'
import { isSameSet, maxMembers, toSet, type DiscoveredUpstream, type MemberSet } from '../../lib/discovery/members.ts'
import type { UpstreamPools } from '../upstream-pools.ts'
import type { DiscoverySource } from './source.ts'

/** A source gave another list. */
export interface DiscoveryChanged {
  readonly type: 'discovery_changed'
  readonly pool: string
  /** Ids that are in the list, and were not before. Both lists are empty where only options changed, as weights. */
  readonly added: readonly string[]
  readonly removed: readonly string[]
  /** How many there are now. */
  readonly members: number
  /** ISO 8601. */
  readonly at: string
}

/** A source does not know its upstreams any more; told once until it does again. */
export interface DiscoveryFailed {
  readonly type: 'discovery_failed'
  readonly pool: string
  readonly error: string
  /** How many members of an earlier list stay in use. */
  readonly keeping: number
  readonly at: string
}

export interface DiscoveryRecovered {
  readonly type: 'discovery_recovered'
  readonly pool: string
  readonly members: number
  readonly at: string
}

export type DiscoveryEvent = DiscoveryChanged | DiscoveryFailed | DiscoveryRecovered

/** What is known of a pool's members, and how old that is. */
export interface DiscoveryView {
  readonly pool: string
  readonly kind: 'dns' | 'file' | 'source'
  /** The DNS name, the file's path, or the source's name. */
  readonly from: string
  /** Ids of the members that were discovered. */
  readonly members: readonly string[]
  /** When the source last gave a whole list, a changed one or not; ISO 8601. */
  readonly lastSuccess: string | null
  /** How long ago that was, in ms. */
  readonly ageMs: number | null
  /** Why the source does not know its upstreams now; null where it does. */
  readonly lastError: Readonly<{ at: string, message: string }> | null
  /** When it looks next; null where that is not known. */
  readonly nextAt: string | null
  /** The members are those of an earlier list, or none have ever come. */
  readonly stale: boolean
}

export interface FollowerContext {
  pools: Pick<UpstreamPools, 'setMembers'>
  log: FastifyBaseLogger
  clock: Clock
  /** Called after the change is committed. */
  tell: (event: DiscoveryEvent) => void
}

const nobody: MemberSet = { members: [], ids: [], cut: 0 }

/** One pool and its source: hands what the source says to the pool, and keeps the last good list. */
export class Follower {
  readonly pool: string
  readonly options: DiscoveryOptions
  /** Resolves when the source has said something for the first time, be it that it failed, or when it was stopped. */
  readonly heard: Promise<void>
  readonly #source: DiscoverySource
  readonly #context: FollowerContext
  #hear: () => void = () => {}
  #running = false
  #set: MemberSet
  #lastSuccess: { at: string, time: number } | null = null
  #lastError: { at: string, message: string } | null = null

  /** @param before the set of another source of this pool, which stays until this one has given its first */
  constructor (pool: string, options: DiscoveryOptions, source: DiscoverySource, context: FollowerContext, before?: Follower) {
    this.pool = pool
    this.options = options
    this.#source = source
    this.#context = context
    this.#set = before === undefined ? nobody : before.#set
    this.heard = new Promise((resolve) => { this.#hear = resolve })
  }

  get view (): DiscoveryView {
    const { dns, file, source } = this.options
    const nextAt = this.#source.nextAt ?? null
    return Object.freeze({
      pool: this.pool,
      kind: dns !== undefined ? 'dns' : file !== undefined ? 'file' : 'source',
      from: dns?.name ?? file?.path ?? source ?? '',
      members: this.#set.ids,
      lastSuccess: this.#lastSuccess?.at ?? null,
      ageMs: this.#lastSuccess === null ? null : Math.round(this.#context.clock() - this.#lastSuccess.time),
      lastError: this.#lastError,
      nextAt: nextAt === null ? null : new Date(nextAt).toISOString(),
      stale: this.#lastSuccess === null || this.#lastError !== null
    })
  }

  start (): void {
    this.#running = true
    try {
      this.#source.start((members, incomplete) => { this.#report(members, incomplete) }, (error) => { this.#fail(error) })
    } catch (error) {
      this.#fail(error as Error)
    }
  }

  /** Ends the source. The members stay as they are. */
  async stop (): Promise<void> {
    this.#running = false
    this.#hear()
    await this.#source.stop()
  }

  refresh (): void {
    if (this.#running) this.#source.refresh?.()
  }

  /** Gives the pool its members again, which may have been made anew meanwhile. */
  apply (): void {
    if (this.#set.ids.length === 0) return
    try {
      this.#context.pools.setMembers(this.pool, this.#set.members)
    } catch (error) {
      this.#note(error as Error)
    }
  }

  #report (reported: readonly DiscoveredUpstream[], incomplete?: Error): void {
    if (!this.#running) return
    if (reported.length === 0 && this.options.keep) return this.#fail(new Error('the source gives no upstreams'))
    try {
      const set = toSet(reported)
      if (set.cut > 0 && this.#set.cut === 0) this.#context.log.warn({ pool: this.pool, given: set.ids.length + set.cut, used: maxMembers }, 'discovery_cut')
      if (isSameSet(set.members, this.#set.members)) this.#set = set
      else this.#replace(set)
    } catch (error) {
      return this.#fail(error as Error)
    }
    if (incomplete === undefined) this.#succeed()
    else this.#note(incomplete)
    this.#hear()
  }

  #succeed (): void {
    const at = new Date().toISOString()
    const failed = this.#lastError !== null
    this.#lastSuccess = { at, time: this.#context.clock() }
    this.#lastError = null
    if (failed) this.#tell({ type: 'discovery_recovered', pool: this.pool, members: this.#set.ids.length, at })
  }

  #fail (error: Error): void {
    if (!this.#running) return
    const { keep } = this.options
    this.#note(error, keep ? this.#set.ids.length : 0)
    if (!keep && this.#set.ids.length > 0) this.#replace(nobody)
    this.#hear()
  }

  #note ({ message }: Error, keeping = this.#set.ids.length): void {
    const first = this.#lastError === null
    const at = new Date().toISOString()
    this.#lastError = Object.freeze({ at, message })
    if (first) this.#tell({ type: 'discovery_failed', pool: this.pool, error: message, keeping, at })
  }

  #replace (set: MemberSet): void {
    this.#context.pools.setMembers(this.pool, set.members)
    const before = this.#set.ids
    this.#set = set
    const added = set.ids.filter((id) => !before.includes(id))
    const removed = before.filter((id) => !set.ids.includes(id))
    this.#tell({ type: 'discovery_changed', pool: this.pool, added, removed, members: set.ids.length, at: new Date().toISOString() })
  }

  #tell (event: DiscoveryEvent): void {
    const { type, at: _at, ...fields } = event
    this.#context.log[type === 'discovery_failed' ? 'warn' : 'info'](fields, type)
    this.#context.tell(Object.freeze(event))
  }
}
