import { isDeepStrictEqual } from 'node:util'
import type { PoolOptions, UpstreamOptions } from '../../config/schema.ts'
import { Lane, Signal, type LaneObserver, type SelectBreaker } from '../../lib/balance/lane.ts'
import { StickyTable } from '../../lib/balance/sticky.ts'
import { Episodes } from '../../lib/episode.ts'
import type { Random } from '../../lib/random.ts'
import { RetryBudget } from '../../lib/retry/budget.ts'
import { parseUpstreamUrl, type UpstreamUrl } from '../../lib/upstream-url.ts'
import { connectSettings, tlsSettings, type ConnectSettings } from './connector.ts'
import { UpstreamState, type Drain } from './state.ts'
import { connectionKey, Transport } from './transport.ts'
import { Upstream } from './upstream.ts'

/** A pool as it is now: immutable, swapped whole; its upstreams carry the running state. */
export interface UpstreamPool {
  readonly name: string
  readonly options: PoolOptions
  readonly upstreams: readonly Upstream[]
  readonly signal: Signal
  /** What retries may cost the pool. */
  readonly budget: RetryBudget
  /** The cookies that keep clients at their upstreams, or null. */
  readonly sticky: StickyTable | null
}

/** An upstream that discovery has found. */
export interface DiscoveredUpstream extends Partial<Omit<UpstreamOptions, 'url'>> {
  readonly url: string
  /** The address to connect to, in the place of what the URL's host resolves to. The id is made of it then. */
  readonly address?: string
}

/** Which upstreams came, went and stayed; ids. */
export interface MembersChange {
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly kept: readonly string[]
}

interface Running {
  readonly state: UpstreamState
  transport: Transport
  key: string
}

/** What becomes of a pool, worked out whole before anything is changed: reading a certificate may fail. */
export interface Plan {
  readonly change: MembersChange
  /** Nothing changes at all. */
  readonly same: boolean
  /** Makes it so; nothing at all where nothing changes. Does not throw. */
  commit (): void
}

interface Wanted {
  url: UpstreamUrl
  address: string | null
  options: UpstreamOptions
  discovered: boolean
  /** It is not wanted any more, and serves until those that are have been looked at. */
  leaving: boolean
}

/** How long members that are not wanted any more serve at most while those that are have not been looked at, in ms. */
const warmMs = 10000

/** The budget has recovered when it has refused nothing for so long, in ms: the time that it is counted over. */
const spentMs = 10000

/** Drains of upstreams that are gone that are remembered for their return. */
const maxRemembered = 256

/** What is running of a pool, by its name: it outlives reloads and gives a new snapshot for each change. */
export class PoolRuntime {
  readonly name: string
  readonly #signal = new Signal()
  readonly #budget: RetryBudget
  readonly #random: Random
  /** Times in which the budget refuses further attempts. */
  readonly spending = new Episodes(spentMs)
  #refusedBefore = 0
  readonly #retire: (transport: Transport) => void
  #running = new Map<string, Running>()
  /** When those that are leaving have to be gone; Infinity: nobody is. */
  #leaveBy = Infinity
  #discovered: readonly DiscoveredUpstream[] = []
  /** What the files of `tls` said when the options were taken. */
  #tls: ConnectSettings = {}
  /** Drains of upstreams that have gone, by id: an answer of a resolver without one of them is no operator's leave to use it again. */
  readonly #drains = new Map<string, Drain>()
  #snapshot: UpstreamPool | null = null
  #lane: Lane<UpstreamPool, Upstream> | null = null

  /** @param retire takes connections that nothing new will use */
  constructor (name: string, options: PoolOptions, random: Random, now: number, retire: (transport: Transport) => void) {
    this.name = name
    this.#random = random
    this.#retire = retire
    this.#budget = new RetryBudget(options.retry.budget, now)
  }

  /** Whether the budget has begun to refuse further attempts since it was asked last. */
  looksSpent (now: number): boolean {
    const refused = this.#budget.refused - this.#refusedBefore
    this.#refusedBefore = this.#budget.refused
    return refused > 0 && this.spending.note('budget', now, refused)
  }

  get snapshot (): UpstreamPool { return this.#snapshot as UpstreamPool }
  get signal (): Signal { return this.#signal }
  /** The lane of the present snapshot, if anybody has asked for it. */
  get madeLane (): Lane<UpstreamPool, Upstream> | null { return this.#lane }

  /** The lane of the present snapshot, made on first use: its breakers are there by then. */
  lane (breakerOf: (upstream: Upstream) => SelectBreaker | null, observer: LaneObserver<Upstream>): Lane<UpstreamPool, Upstream> {
    return this.#lane ??= new Lane(this.snapshot, breakerOf, this.#random, observer)
  }

  /**
   * While too few of the new members are known to be healthy, and some have not been looked at, the old ones stay and serve: a change
   * of addresses leaves nobody without a server, and no few servers with everybody.
   * @param members what discovery has found; left out: as before
   */
  plan (options: PoolOptions, members: readonly DiscoveredUpstream[] = this.#discovered, mayStay = true): Plan {
    const wanted = wantedOf(options, options.discovery === undefined ? [] : members)
    const tls = options === this.#snapshot?.options ? this.#tls : tlsSettings(options.tls)
    if (mayStay) this.#keepLeaving(wanted, options)
    // A pool whose first members come now has nobody that they could join.
    const running = new Map<string, Running>()
    for (const [id, { url, address }] of wanted) {
      const known = this.#running.get(id)
      const settings = connectSettings(url, tls, address)
      const key = connectionKey(url, address, settings, options)
      running.set(id, {
        state: known?.state ?? new UpstreamState(this.#signal, this.#running.size > 0),
        transport: known !== undefined && known.key === key ? known.transport : new Transport(url.origin, settings, options),
        key
      })
    }
    const ids = [...wanted.keys()]
    const change = {
      added: ids.filter((id) => !this.#running.has(id)),
      removed: [...this.#running.keys()].filter((id) => !wanted.has(id)),
      kept: ids.filter((id) => this.#running.has(id))
    }
    const same = this.#snapshot !== null && change.added.length + change.removed.length === 0 && isDeepStrictEqual(options, this.#snapshot.options) &&
      isDeepStrictEqual(members, this.#discovered) && Array.from(running).every(([id, { key }]) => this.#running.get(id)?.key === key)
    return { change, same, commit: same ? () => {} : () => { this.#commit(options, members, wanted, running, tls) } }
  }

  #keepLeaving (wanted: Map<string, Wanted>, { health, spillOver }: PoolOptions): void {
    if (this.#snapshot === null || !health.enabled || wanted.size === 0) return
    if (areEnough(Array.from(wanted.keys(), (id) => this.#running.get(id)?.state ?? unknownState), spillOver)) return
    for (const { id, url, address, options, discovered, state } of this.#snapshot.upstreams) {
      if (!wanted.has(id) && serves(state)) wanted.set(id, { url, address, options, discovered, leaving: true })
    }
  }

  /** Lets those go that were only kept until others have been looked at, if it is time; null: it is not, or nobody is leaving. */
  release (now: number): MembersChange | null {
    if (this.#leaveBy === Infinity) return null
    const { upstreams, options } = this.snapshot
    if (now < this.#leaveBy && !areEnough(upstreams.flatMap(({ leaving, state }) => leaving ? [] : [state]), options.spillOver)) return null
    const { change, commit } = this.plan(options, this.#discovered, false)
    commit()
    return change
  }

  #commit (options: PoolOptions, members: readonly DiscoveredUpstream[], wanted: ReadonlyMap<string, Wanted>, running: Map<string, Running>, tls: ConnectSettings): void {
    const upstreams = Array.from(wanted, ([id, parts]) => {
      const { state, transport } = running.get(id) as Running
      return new Upstream({ ...parts, pool: this.name, poolOptions: options, state, transport })
    })
    const before = this.#running
    const leaving = upstreams.some((upstream) => upstream.leaving)
    this.#leaveBy = leaving ? Math.min(this.#leaveBy, performance.now() + warmMs) : Infinity
    this.#running = running
    this.#discovered = members
    this.#tls = tls
    this.#budget.configure(options.retry.budget)
    this.#snapshot = Object.freeze({
      name: this.name,
      options,
      upstreams: Object.freeze(upstreams),
      signal: this.#signal,
      budget: this.#budget,
      sticky: options.sticky === undefined ? null : new StickyTable(options.sticky, this.name, upstreams.map(({ id }) => id))
    })
    this.#lane?.supersede()
    this.#lane = null
    for (const [id, { state, transport }] of before) {
      const now = running.get(id)
      if (now?.transport !== transport) this.#retire(transport)
      if (now === undefined) {
        this.#remember(id, state.drain)
        state.leave()
      }
    }
    this.#signal.touch()
  }

  #remember (id: string, drain: Drain | null): void {
    if (drain === null) return
    this.#drains.set(id, drain)
    for (const oldest of this.#drains.keys()) {
      if (this.#drains.size <= maxRemembered) break
      this.#drains.delete(oldest)
    }
  }

  /** The drain of an upstream that has come back, if it is not over; it is forgotten here. */
  takeDrain (id: string): Drain | null {
    const drain = this.#drains.get(id) ?? null
    this.#drains.delete(id)
    return drain === null || (drain.until !== null && Date.parse(drain.until) <= Date.now()) ? null : drain
  }

  /** The pool is no more: exchanges at it end, new ones do not begin. */
  leave (): void {
    for (const { state, transport } of this.#running.values()) {
      state.leave()
      this.#retire(transport)
    }
  }

  /** The app closes: no timer may be left. */
  close (): void {
    for (const { state } of this.#running.values()) state.leave()
  }

  /** All connections in use. */
  transports (): Transport[] {
    return Array.from(this.#running.values(), ({ transport }) => transport)
  }

  /** Connections of an upstream that is drained close as they become idle. */
  renewConnections (id: string): void {
    this.#running.get(id)?.transport.renew()
  }
}

type Seen = Pick<UpstreamState, 'healthy' | 'checked' | 'draining'>

/** One that is not known yet. */
const unknownState: Seen = { healthy: false, checked: false, draining: false }

const serves = ({ healthy, draining }: Seen): boolean => healthy && !draining

/** Whether these can do without those that were there before: enough of them serve, or all have been looked at. */
function areEnough (states: readonly Seen[], spillOver: number): boolean {
  return spillOver * states.filter(serves).length >= states.length || states.every(({ checked, draining }) => checked || draining)
}

/** The configured upstreams first, then what was found; the first of one id counts. */
function wantedOf ({ upstreams }: PoolOptions, members: readonly DiscoveredUpstream[]): Map<string, Wanted> {
  const wanted = new Map<string, Wanted>()
  for (const options of upstreams) {
    const url = parseUpstreamUrl(options.url)
    if (!wanted.has(url.id)) wanted.set(url.id, { url, address: null, options, discovered: false, leaving: false })
  }
  for (const { address = null, ...given } of members) {
    const named = parseUpstreamUrl(given.url)
    const url = address === null ? named : { ...named, id: idAt(address, named.id) }
    const options = Object.freeze({ ...given, weight: given.weight ?? 1, priority: given.priority ?? 0 })
    if (!wanted.has(url.id)) wanted.set(url.id, { url, address, options, discovered: true, leaving: false })
  }
  return wanted
}

/** `host:port` with the address in the place of the host. */
function idAt (address: string, id: string): string {
  const port = id.slice(id.lastIndexOf(':') + 1)
  return `${address.includes(':') ? `[${address}]` : address}:${port}`
}
