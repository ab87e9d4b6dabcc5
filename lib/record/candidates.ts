import { openedBy } from '../breaker/explanation.ts'
import { milliseconds, plural } from '../words.ts'
import type { Candidate, MemberNote, PassedOver, PoolNote, StoredLine } from './types.ts'

/**
 * Every member as it stood, with what became of it. Those that had an attempt come as picked, whatever they would have been for the next.
 * @param atMs epoch ms at which the request had been received
 * @param iso writes epoch ms as ISO 8601
 */
export function candidatesOf (note: PoolNote, { used, passed, lookedMs }: StoredLine, atMs: number, iso: (epochMs: number) => string): Candidate[] {
  return note.members.map((member, index) => {
    const over = passed.find((each) => each.index === index)
    const isUsed = used.includes(index)
    const why = isUsed ? 'picked' : over?.why ?? member.why
    const { reopenAt, openedAt, ejectedUntil, ...rest } = member
    return {
      ...rest,
      reopenAt: reopenAt === null ? null : iso(reopenAt),
      ...openedAt !== undefined && { openedAt: iso(openedAt) },
      ...ejectedUntil !== undefined && { ejectedUntil: iso(ejectedUntil) },
      why,
      used: isUsed,
      ...over !== undefined && { load: { inFlight: over.inFlight, limit: over.limit, waiting: over.waiting, maxWaiting: over.maxWaiting } },
      detail: detailOf({ ...member, why }, over, atMs + lookedMs)
    }
  })
}

/** The numbers behind why, in words. */
function detailOf (member: MemberNote, over: PassedOver | undefined, atMs: number): string {
  switch (member.why) {
    case 'picked': return `was tried${member.state === 'half-open' ? ', as a probe of its half-open breaker' : ''}`
    case 'not_picked': return `could have taken it; the balancer chose another${share(member)}`
    case 'not_needed': return `tier ${member.tier ?? 0}: the tiers before it carry all traffic`
    case 'tried': return 'had been tried for this request already'
    case 'capacity': return over === undefined ? 'had no room' : room(over)
    case 'breaker_open': return `breaker ${opened(member, atMs)}${reopening(member, atMs)}${evidence(member)}`
    case 'breaker_half_open': return `breaker half-open${because(member)}, all of its probes out${probes(member)}${evidence(member)}`
    case 'unhealthy': return checks(member)
    case 'unchecked': return 'no health check has ended yet'
    case 'ejected': return `ejected by passive observation${member.ejectedUntil === undefined ? '' : ` for another ${milliseconds(Math.max(0, member.ejectedUntil - atMs))}`}${ejection(member)}`
    case 'draining': return draining(member)
    case 'weight_zero': return 'its weight is 0'
  }
}

const share = ({ weight = 1, weightNow }: MemberNote): string => weightNow === undefined ? '' : ` (slow start: ${Math.round(100 * weightNow / weight)} % of its share)`

function room ({ inFlight, limit, waiting, maxWaiting }: PassedOver): string {
  if (limit > 0 && inFlight >= limit) return `${inFlight} of ${plural(limit, 'exchange')} in flight`
  return `all connections busy, and ${waiting} of ${maxWaiting} places in the queue for one taken`
}

function reopening ({ reopenAt }: MemberNote, atMs: number): string {
  return reopenAt === null ? '' : `, admits again in ${milliseconds(Math.max(0, reopenAt - atMs))}`
}

function opened (member: MemberNote, atMs: number): string {
  const { breaker, openedAt } = member
  const since = openedAt === undefined ? '' : ` for ${milliseconds(Math.max(0, atMs - openedAt))}`
  if (breaker?.forced?.state !== 'open') return `open${since}${because(member)}`
  return `forced open${since}${breaker.forced.reason === null ? '' : ` (${breaker.forced.reason})`}`
}

function ejection ({ ejection: found }: MemberNote): string {
  if (found === undefined) return ''
  return `: ${found.trigger === 'ratio' ? `${found.failures} of ${plural(found.total ?? 0, 'answer')} failed` : `${plural(found.failures, 'failure')} in a row`}`
}

const because = ({ breaker }: MemberNote): string => openedBy(breaker?.opening ?? null)

function evidence ({ breaker }: MemberNote): string {
  return breaker === undefined || breaker.openCount === 0 ? '' : `; it has opened ${breaker.openCount === 1 ? 'once' : `${breaker.openCount} times`}`
}

function probes ({ breaker }: MemberNote): string {
  return breaker === undefined ? '' : ` (${breaker.probes.inFlight} under way, ${breaker.probes.settled} of ${breaker.probes.batch} with a result)`
}

function checks ({ health }: MemberNote): string {
  if (health?.lastCheck == null) return 'unhealthy: no check has passed yet'
  const { lastCheck: { status, cause, ms, at }, streak, since } = health
  return `unhealthy since ${since}: ${plural(streak, 'check')} failed in a row, the last at ${at} (${cause}${status === null ? '' : `, status ${status}`}, ${Math.round(ms)} ms)`
}

function draining ({ drain }: MemberNote): string {
  if (drain === undefined) return 'has left the pool'
  return `drained since ${drain.since}${drain.until === null ? '' : ` until ${drain.until}`}${drain.reason === null ? '' : `: ${drain.reason}`}`
}
