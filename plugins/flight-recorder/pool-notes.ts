import type { FastifyInstance } from 'fastify'
import type { SelectBreaker } from '../../lib/balance/lane.ts'
import type { Breaker } from '../../lib/breaker/breaker.ts'
import type { BreakerSnapshot } from '../../lib/breaker/types.ts'
import { Note } from '../../lib/record/ring.ts'
import type { MemberNote, PassedOver, PoolNote, Why } from '../../lib/record/types.ts'
import type {} from '../breaker-registry.ts'
import type {} from '../configuration.ts'
import type { UpstreamLane } from '../forwarder/terms.ts'
import type {} from '../health-polling.ts'
import type { Upstream } from '../upstream-pools.ts'

/** The numbers in a note are no older than this at a pick that goes by it, in ms. */
const staleMs = 1000

/**
 * Writes down what is believed of a pool's members, once for as long as it stays so: the roster tells when it is not, and once a
 * second it is looked whether the numbers behind it have changed.
 */
export class PoolNotes {
  readonly #app: FastifyInstance

  constructor (app: FastifyInstance) {
    this.#app = app
  }

  /** @param now monotonic ms */
  of (lane: UpstreamLane, now: number): Note {
    const note = lane.note as Note | null
    return note !== null && now - note.asOf < staleMs ? note : this.#renewed(lane, note, now)
  }

  #renewed (lane: UpstreamLane, before: Note | null, now: number): Note {
    const text = JSON.stringify(this.#write(lane, now))
    if (before?.text === text) {
      before.asOf = now
      return before
    }
    const note = new Note(text, now)
    lane.note = note
    return note
  }

  #write (lane: UpstreamLane, now: number): PoolNote {
    const { upstreams } = lane.pool
    const version = this.#app.hasDecorator('configuration') ? this.#app.configuration.view().version : 0
    const epoch = Date.now() - now
    return { version, panic: lane.panic, members: upstreams.map((upstream, index) => this.#member(lane, upstream, index, now, epoch)) }
  }

  #member (lane: UpstreamLane, upstream: Upstream, index: number, now: number, epoch: number): MemberNote {
    const { pool, id, drain, weight, priority, ejectedUntil, ejection: { latest } } = upstream
    const breaker = lane.breakers[index] as Breaker | null
    const state = breaker?.state ?? null
    const snapshot = breaker === null || breaker.mode === 'off' || (state === 'closed' && breaker.consecutiveFailures === 0) ? null : breaker.snapshot(now)
    const health = this.#app.hasDecorator('health') ? this.#app.health.get(pool, id) : undefined
    const weightNow = lane.weightOf(index)
    return {
      upstream: id,
      why: whyOf(lane, upstream, index, now),
      state,
      reopenAt: snapshot === null || snapshot.reopenAt === null ? null : tenths(epoch + snapshot.reopenAt),
      ...snapshot !== null && opened(snapshot, epoch),
      ...snapshot !== null && { breaker: numbers(snapshot) },
      ...health !== undefined && (!health.healthy || health.held) && { health: { healthy: health.healthy, held: health.held, since: health.since, streak: health.streak, lastCheck: health.lastCheck } },
      ...ejectedUntil > now && { ejectedUntil: tenths(epoch + ejectedUntil), ...latest !== null && { ejection: { trigger: latest.trigger, failures: latest.failures, total: latest.total } } },
      ...drain !== null && { drain },
      ...weight !== 1 && { weight },
      ...weightNow > 0 && upstream.share < 1 && { weightNow },
      ...priority !== 0 && { tier: priority }
    }
  }
}

/** Why it could be picked, or not, for as long as the roster stays as it is. */
function whyOf (lane: UpstreamLane, { draining, weight, checked, healthy, ejectedUntil }: Upstream, index: number, now: number): Why {
  if (draining) return 'draining'
  if (weight === 0) return 'weight_zero'
  if (!checked && !healthy) return 'unchecked'
  if (lane.isIn(index)) return lane.tierOf(index).load > 0 ? 'not_picked' : 'not_needed'
  if (lane.isWell(index)) return lane.breakers[index]?.state === 'open' ? 'breaker_open' : 'breaker_half_open'
  if (!healthy) return 'unhealthy'
  return ejectedUntil > now ? 'ejected' : 'not_needed'
}

/** The same moment reads the same each time, although two clocks tell it. */
const tenths = (epochMs: number): number => Math.round(epochMs / 100) * 100

/** A force is the latest transition for as long as it lasts: below it nobody is told of any. */
function opened ({ force, lastTransition, openedAt }: BreakerSnapshot, epoch: number): Pick<MemberNote, 'openedAt'> {
  const at = force?.state === 'open' ? lastTransition?.at ?? null : openedAt
  return at === null ? {} : { openedAt: tenths(epoch + at) }
}

/** Of a breaker that has something to tell. */
function numbers ({ consecutiveFailures, window: { total, failures }, openCount, opening, probes: { batch, inFlight, settled, failed }, force }: BreakerSnapshot): MemberNote['breaker'] & object {
  return { consecutiveFailures, total, failures, openCount, ...opening !== null && { opening }, probes: { batch, inFlight, settled, failed }, ...force !== null && { forced: { state: force.state, reason: force.reason } } }
}

/** Who would be passed over now for want of room or of a permit, of those that the roster has in. @param but the one that was picked; -1: nobody was */
export function passedOver (lane: UpstreamLane, but: number, now: number): PassedOver[] {
  return lane.pool.upstreams.flatMap((upstream, index) => {
    if (index === but || !lane.isWell(index)) return []
    const why = whyNot(upstream, lane.breakers[index] ?? null, now)
    return why === null ? [] : [{ index, why, inFlight: upstream.inFlight, limit: upstream.inFlightLimit, waiting: upstream.waiting, maxWaiting: upstream.maxWaiting }]
  })
}

function whyNot ({ hasRoom }: Upstream, breaker: SelectBreaker | null, now: number): Why | null {
  if (!hasRoom) return 'capacity'
  if (breaker === null || breaker.wouldAdmit(now)) return null
  return breaker.state === 'open' ? 'breaker_open' : 'breaker_half_open'
}
