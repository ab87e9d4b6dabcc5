import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { objectOf } from '../../config/values.ts'
import { oneLine } from '../../lib/one-line.ts'
import { AdminFailure, ask, failureText, type Admin } from '../admin-client.ts'
import { boundedSignal } from '../bounded.ts'
import { eventLine } from '../cli/events.ts'
import type { UpstreamStatus } from '../cli/status-read.ts'
import { durationText } from '../cli/duration.ts'
import { isLost } from '../load/figures.ts'
import { startLoad, type Load, type Sample } from '../load/load.ts'
import { maxDrillMs } from '../upstream-drill.ts'
import type { UpstreamChanges } from '../upstream-options.ts'
import type { Claim, Drill, Plan } from './drills.ts'
import { isStarved, rateLimit } from './drills.ts'
import { Recovery, slackOf, unusedText } from './recovery.ts'
import { holdPool, readPool, type HeldUpstream } from './target.ts'
import { attemptsOf, Watch } from './seen.ts'

export interface PlayOptions {
  admin: Admin
  pool: string | undefined
  /** Where requests are sent. */
  url: URL
  rate: number
  faultMs: number
  ratio: number
  seed: number
  start: boolean
  stopped: AbortSignal
  say: (line: string) => void
}

/** No faults of its own, as long as it is held: the moody upstream of the demo is well meanwhile. */
const calm: UpstreamChanges = { failEvery: 0, failRatio: 0, delayMs: 2, jitterMs: 0, hang: false, hangHealth: false, refuseHealth: false, truncateEvery: 0, resetEvery: 0, slowBodyMs: 0, bodyBytes: null, status: 200, close: false }

/** The longest fault, in ms. */
export const maxFaultMs = 60_000
const calmMs = 1000
/** What was due so shortly before a fault may have been under way when it began. */
const underWayMs = 200
const marginMs = 5000
const pollMs = 100

/** A moment of a drill, before its line. */
const stamp = (from: number): string => `${((performance.now() - from) / 1000).toFixed(1)}s`.padStart(7)

function answers (samples: readonly Sample[]): string {
  const counts = new Map<string, number>()
  for (const { status, failure, reason } of samples) {
    const key = failure !== '' ? failure : reason === '' ? String(status) : `${status} ${reason}`
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return [...counts].toSorted(([, a], [, b]) => b - a).map(([key, count]) => `${count} x ${key}`).join(', ') || 'none'
}

/** Sees to it that requests for the URL reach the pool. @throws AdminFailure */
async function checkRoute (admin: Admin, url: URL, pool: string, signal: AbortSignal): Promise<void> {
  const { status, content } = await ask(admin, `routes/match?host=${encodeURIComponent(url.host)}&path=${encodeURIComponent(url.pathname + url.search)}`, { signal }, [404, 405])
  const to = status === 200 ? objectOf(content)['pool'] : null
  if (to !== pool) throw new AdminFailure(1, `requests for ${url.pathname} go to ${to === null ? 'no pool' : `pool ${String(to)}`}; give a --url that goes to pool ${pool}`)
}

const portOf = (url: URL): number => Number(url.port || 80)
const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '')

/** Sees to it that somebody listens there, before any upstream is touched. @throws AdminFailure */
async function checkListener (url: URL, stopped: AbortSignal): Promise<void> {
  const limit = boundedSignal(marginMs, stopped)
  const socket = connect({ host: hostOf(url), port: portOf(url) })
  try {
    await once(socket, 'connect', { signal: limit.signal })
  } catch (error) {
    if (stopped.aborted) throw error
    throw new AdminFailure(3, `${url.origin}, where requests are to be sent, cannot be reached: ${limit.signal.aborted ? 'no connection in time' : error instanceof Error && 'code' in error ? String(error.code) : failureText(error)}; --url says where the public listener is`)
  } finally {
    limit.end()
    socket.destroy()
  }
}

/**
 * Plays one drill, and leaves everything as it was, however it ends.
 * @returns whether the proxy did what it promises
 * @throws AdminFailure where it is refused, or the pool is not well to begin with
 */
export async function play (drill: Drill, options: PlayOptions): Promise<boolean> {
  const { admin, url, stopped: userStopped, say, seed } = options
  const { pool, ids, promises } = await readPool(admin, options.pool, userStopped)
  if (promises.mode !== 'enforce') throw new AdminFailure(1, `the breakers of pool ${pool} are ${promises.mode === 'off' ? 'off' : 'only observing'}: there is nothing to be expected of them`)
  if (!drill.all && ids.length < 2) throw new AdminFailure(1, `pool ${pool} has one upstream: without another, nobody can take over`)
  const rate = drill.rate?.(promises) ?? options.rate
  if (rate > rateLimit) throw new AdminFailure(1, `it would take ${rate} requests a second to fill shedding.maxInFlight ${promises.maxInFlight}; ${rateLimit} is the most that a drill sends`)
  const plan: Plan = { promises, upstreams: ids.length, rate, faultMs: Math.max(options.faultMs, Math.min(maxFaultMs, drill.least?.(promises) ?? 0)), ratio: options.ratio }
  const restMs = plan.faultMs + slackOf(promises) + 2 * calmMs + marginMs
  if (promises.openMs * 1.2 + restMs > maxDrillMs) throw new AdminFailure(1, `with breaker.openMs ${promises.openMs} it would take ${durationText(promises.openMs * 1.2 + restMs)}; ${durationText(maxDrillMs)} is the longest`)
  await checkRoute(admin, url, pool, userStopped)
  await checkListener(url, userStopped)

  const { held, lost, release } = await holdPool(ids, options.start)
  const stopped = AbortSignal.any([userStopped, lost])
  const victims = drill.all ? held : held.slice(seed % held.length, seed % held.length + 1)
  let load: Load | null = null
  let watch: Watch | null = null
  const wait = (ms: number): Promise<void> => sleep(ms, undefined, { signal: stopped })
  try {
    say(`drill ${drill.name}: ${drill.title}`)
    say(`pool ${pool}, ${drill.all ? `all ${ids.length} upstreams` : `upstream ${victims[0]?.id}`}, ${rate} requests a second at ${url.href} for ${durationText(plan.faultMs)} and until all is well, seed ${seed}`)
    const everUsed = `all upstreams are used again within ${durationText(slackOf(promises))} of the end of the fault, and of the open times of their circuits`
    say('expected:')
    for (const line of [...drill.expected(plan), ...drill.all ? [] : ['no other upstream is suspected'], everUsed]) say(`  - ${line}`)
    say('')
    const from = performance.now()
    const note = (text: string): void => say(`${stamp(from)}  ${oneLine(text)}`)
    await Promise.all(held.map((each) => each.set(calm)))
    const { content } = await ask(admin, 'events?limit=1', { signal: stopped })
    const seen = new Watch(admin, pool, Number(objectOf(content)['lastSeq']), (event) => { if (event.type !== 'admin_write') note(eventLine(event).replace(/ (?:evidence|requests|window)=.*$/, '')) })
    watch = seen
    const before = await Promise.all(held.map((each) => each.stats()))
    const running = await startLoad({ host: hostOf(url), port: portOf(url), path: url.pathname + url.search, method: 'GET', bodyBytes: 0, rate, seconds: maxDrillMs / 1000, seed, maxOpen: Math.max(200, promises.maxInFlight * 2), patienceMs: promises.headersMs > 0 ? promises.headersMs * 2 + 5000 : 20_000, prefix: `drill-${seed}-` })
    load = running
    const loadAt = performance.now()
    const endsAt = Date.now() + maxDrillMs
    const allUp = async (thenMs: number): Promise<{ used: boolean, since: number, recovery: Recovery, now: UpstreamStatus[] }> => {
      const since = Date.now()
      const recovery = new Recovery(promises, since)
      for (;;) {
        const now = await seen.upstreams(stopped)
        const used = recovery.look(now, Date.now())
        if (used || Date.now() > recovery.dueAt) return { used, since, recovery, now }
        if (recovery.dueAt + thenMs > endsAt) throw new AdminFailure(1, `it would last until ${new Date(recovery.dueAt + thenMs).toISOString()}, and ${durationText(maxDrillMs)} is the longest (breakwater reset closes a circuit at once): ${unusedText(now)}`)
        await wait(pollMs)
      }
    }
    const beforehand = await allUp(restMs)
    const arrives = async (): Promise<boolean> => (await Promise.all(held.map((each) => each.stats()))).some(({ requests }, i) => requests !== before[i]?.requests)
    const astray = (): AdminFailure => new AdminFailure(1, `no request arrived at pool ${pool}: is ${url.origin} the public listener of this proxy?`)
    // A circuit that nobody comes to try stays open.
    if (!beforehand.used) throw await arrives() ? new AdminFailure(1, `pool ${pool} is not well to begin with: ${unusedText(beforehand.now)}`) : astray()
    await wait(calmMs)
    for (const end = performance.now() + marginMs; !await arrives(); await wait(pollMs)) if (performance.now() > end) throw astray()

    const counted = await attemptsOf(admin, pool, stopped)
    seen.events.length = 0
    seen.unready = false
    const begun = performance.now()
    note(`${victims.map(({ id }) => id).join(', ')}: the fault begins`)
    await drill.fault({ wait, set: async (faults, dead) => { await Promise.all(victims.map((each) => each.set({ ...calm, ...faults }, dead))) } }, plan)
    await Promise.all(victims.map((each) => each.set(calm)))
    const over = performance.now()
    note('the fault is over')
    const { used, since, recovery, now: found } = await allUp(calmMs)
    const tookMs = Date.now() - since
    const openMs = recovery.letInAt - since
    note(used ? 'all upstreams are used again' : `not all upstreams are used again: ${unusedText(found)}`)
    await wait(calmMs)
    running.stop()
    const { samples } = await running.result
    const due = samples.filter(({ at }) => at >= begun - loadAt - underWayMs && at < over - loadAt)
    seen.check()
    const others = held.filter((each) => !victims.includes(each)).map(({ id }) => id)
    const claims: Claim[] = [
      ...drill.claims({ ...plan, watch: seen, victims: victims.map(({ id }) => id), others, samples: due }),
      ...drill.all ? [] : [{ what: 'no other upstream was suspected', seen: others.filter((id) => seen.left(id)).join(', ') || 'none was', holds: others.every((id) => !seen.left(id)) }],
      { what: everUsed.replace('are used', 'were used'), seen: used ? `after ${durationText(tookMs)}${openMs > 0 ? `, of which ${durationText(openMs)} were open times` : ''}` : 'no', holds: used },
      await nothingLeft(seen, held, stopped)
    ]
    const starved = due.filter(isStarved)
    if (starved.length > 0) claims.push({ what: 'not judged, as this machine is too busy', seen: answers(starved), holds: null })
    const after = samples.filter(({ at }) => at >= over - loadAt)
    say('')
    say(`answers during the fault: ${answers(due)}`)
    say(`answers afterwards: ${answers(after)}${after.some(isLost) ? ' (a circuit that is tried again may cost some)' : ''}`)
    const now = await attemptsOf(admin, pool, stopped)
    if (counted !== null && now !== null) say(`attempts since the fault began, by GET /metrics: ${[...now].map(([outcome, count]) => `${count - (counted.get(outcome) ?? 0)} ${outcome}`).join(', ')}`)
    for (const { what, seen: is, holds } of claims) say(`${holds === null ? '  --' : holds ? 'pass' : 'FAIL'}  ${what}: ${is}`)
    const passed = claims.every(({ holds }) => holds !== false)
    say(`drill ${drill.name}: ${passed ? 'pass' : 'FAIL'}`)
    return passed
  } catch (error) {
    throw lost.aborted && !userStopped.aborted ? lost.reason : error
  } finally {
    await release()
    await Promise.all([load?.end(), watch?.end()])
  }
}

/** In flight is what anybody sends. */
async function nothingLeft (watch: Watch, held: readonly HeldUpstream[], signal: AbortSignal): Promise<Claim> {
  const arrived = async (): Promise<number> => (await Promise.all(held.map((each) => each.stats()))).reduce((sum, { requests }) => sum + requests, 0)
  const before = await arrived()
  let left = 0
  for (const end = performance.now() + marginMs; performance.now() < end; await sleep(pollMs, undefined, { signal })) {
    left = (await watch.upstreams(signal)).reduce((sum, { inFlight }) => sum + inFlight, 0)
    if (left === 0) break
  }
  const others = left === 0 ? 0 : await arrived() - before
  return { what: 'nothing is left in flight at the pool', seen: others > 0 ? `${left}, which is not judged: ${others} requests of others came meanwhile` : String(left), holds: others > 0 ? null : left === 0 }
}
