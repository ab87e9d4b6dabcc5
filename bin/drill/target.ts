import { isIP } from 'node:net'
import { listOf, objectOf } from '../../config/values.ts'
import { AdminFailure, ask, failureText, type Admin } from '../admin-client.ts'
import { startUpstream, type ScriptedUpstream, type UpstreamStats } from '../scripted-upstream.ts'
import { drillPath, upstreamMark } from '../upstream-drill.ts'
import type { UpstreamChanges } from '../upstream-options.ts'

const waitMs = 3000
/** A hold ends so long after the drill's last word: should that be killed, nobody stays dead for longer. */
const holdMs = 15_000
const wordEveryMs = 3000

/** An upstream that a drill holds: it does what it is told until the drill ends, or its time is over. */
export interface HeldUpstream {
  id: string
  set: (faults: UpstreamChanges, dead?: boolean) => Promise<void>
  stats: () => Promise<UpstreamStats>
  /** As it was before. */
  release: () => Promise<void>
}

/** `host:port` of this machine, or null: nothing else is touched. */
export function loopbackOf (id: string): { host: string, port: number } | null {
  const [, bracketed, plain, port] = /^(?:\[([0-9a-f:]+)\]|([\d.]+)):(\d+)$/i.exec(id) ?? []
  const host = bracketed ?? plain ?? ''
  return isIP(host) !== 0 && (host === '::1' || host.startsWith('127.')) ? { host, port: Number(port) } : null
}

async function call (url: string, method: string, body?: object): Promise<{ status: number, mark: string | null, content: unknown }> {
  const response = await fetch(url, { method, redirect: 'manual', signal: AbortSignal.timeout(waitMs), ...body !== undefined && { body: JSON.stringify(body) } })
  const text = await response.text()
  return { status: response.status, mark: response.headers.get('server'), content: text.startsWith('{') ? JSON.parse(text) as unknown : null }
}

/** Asks, in a way that harms nobody, whether it is a scripted upstream. 'nobody': nothing listens there. */
async function whatIs (id: string): Promise<'scripted' | 'nobody' | 'other'> {
  try {
    return (await call(`http://${id}/__stats`, 'GET')).mark === upstreamMark ? 'scripted' : 'other'
  } catch (error) {
    return failureText(error) === 'ECONNREFUSED' ? 'nobody' : 'other'
  }
}

async function hold (id: string): Promise<HeldUpstream> {
  const { status, content } = await call(`http://${id}${drillPath}`, 'POST', { ttlMs: holdMs })
  const control = objectOf(content)['control']
  if (status === 409) throw new AdminFailure(1, `another drill has ${id}`)
  if (status !== 201 || typeof control !== 'string' || !control.startsWith('http://127.0.0.1:')) throw new AdminFailure(1, `${id} takes no part in drills: it answers ${status}`)
  const steer = async (method: string, body?: object): Promise<unknown> => {
    const answer = await call(control, method, body).catch(() => null)
    if (answer?.status !== 200) throw new AdminFailure(1, `the hold on ${id} has ended`)
    return answer.content
  }
  return {
    id,
    set: async (faults, dead = false) => { await steer('POST', { faults, dead }) },
    stats: async () => await steer('GET') as UpstreamStats,
    release: async () => { await steer('DELETE') }
  }
}

export interface HeldPool {
  held: HeldUpstream[]
  /** Aborted, with the AdminFailure that tells it, when one of them is held no more before it was released. */
  lost: AbortSignal
  release: () => Promise<void>
}

/**
 * Takes hold of every upstream of a pool, or of none. Only scripted upstreams of this machine are ever touched.
 * @param start begin scripted ones where nothing listens
 * @throws AdminFailure with all that stands against it
 */
export async function holdPool (ids: readonly string[], start: boolean): Promise<HeldPool> {
  const problems: string[] = []
  const missing: string[] = []
  for (const id of ids) {
    if (loopbackOf(id) === null) {
      problems.push(`${id} is not an address of this machine`)
      continue
    }
    const what = await whatIs(id)
    if (what === 'other') problems.push(`${id} is no scripted upstream (\`breakwater upstream\`)`)
    else if (what === 'nobody' && !start) problems.push(`nothing listens at ${id}; --start begins a scripted upstream there`)
    else if (what === 'nobody') missing.push(id)
  }
  if (ids.length === 0) problems.push('it has no upstreams')
  if (problems.length > 0) throw new AdminFailure(1, `a drill is for scripted upstreams only: ${problems.join('; ')}`)

  const started: ScriptedUpstream[] = []
  const held: HeldUpstream[] = []
  const lost = new AbortController()
  let speaking: NodeJS.Timeout | undefined
  const release = async (): Promise<void> => {
    clearInterval(speaking)
    // One that has ended its hold by itself is as it was.
    await Promise.allSettled(held.map((each) => each.release()))
    await Promise.allSettled(started.map((each) => each.close()))
  }
  try {
    for (const id of missing) {
      const { host, port } = loopbackOf(id) as { host: string, port: number }
      started.push(await startUpstream({ host, port, name: `drill-${port}` }))
    }
    speaking = setInterval(() => {
      for (const each of held) each.stats().catch((error: unknown) => lost.abort(error))
    }, wordEveryMs)
    for (const id of ids) held.push(await hold(id))
    return { held, lost: lost.signal, release }
  } catch (error) {
    await release()
    throw error instanceof AdminFailure ? error : new AdminFailure(1, failureText(error))
  }
}

/** The parts of a pool's configuration that what is to be expected hangs on. Times in ms. */
export interface Promises {
  /** 0: off, as the next one and `stallOutstanding`. */
  consecutiveFailures: number
  failureRatio: number
  windowSeconds: number
  minimumRequests: number
  minimumShare: number
  stallOutstanding: number
  mode: string
  openMs: number
  maxOpenMs: number
  /** A probe that has waited for so long is given up. */
  probeTimeoutMs: number
  headersMs: number
  intervalMs: number
  health: boolean
  checkTimeoutMs: number
  /** So many failed checks in a row, and so many that pass. */
  fall: number
  rise: number
  retries: number
  maxInFlight: number
}

/** What the proxy says of a pool, and how a request gets there. @throws AdminFailure */
export async function readPool (admin: Admin, name: string | undefined, signal: AbortSignal): Promise<{ pool: string, ids: string[], promises: Promises }> {
  const [pools, config] = await Promise.all([ask(admin, 'pools', { signal }), ask(admin, 'config', { signal })])
  const list = listOf(objectOf(pools.content)['pools']).map(objectOf)
  const names = list.map((each) => String(each['pool']))
  const pool = name ?? (names.length === 1 ? names[0] : undefined)
  if (pool === undefined) throw new AdminFailure(1, `which pool? --pool ${names.join(' or ')}`)
  const found = list.find((each) => each['pool'] === pool)
  if (found === undefined) throw new AdminFailure(1, `there is no pool "${pool}": it has ${names.join(', ')}`)
  const options = objectOf(objectOf(objectOf(config.content)['pools'])[pool])
  const [breaker, timeouts, health, retry, shedding] = ['breaker', 'timeouts', 'health', 'retry'].map((key) => objectOf(options[key])).concat(objectOf(objectOf(config.content)['shedding'])) as Array<Record<string, unknown>> as [Record<string, unknown>, Record<string, unknown>, Record<string, unknown>, Record<string, unknown>, Record<string, unknown>]
  const window = objectOf(breaker['window'])
  const number = (value: unknown, otherwise: number): number => typeof value === 'number' ? value : otherwise
  return {
    pool,
    ids: listOf(found['upstreams']).map((each) => String(objectOf(each)['upstream'])),
    promises: {
      consecutiveFailures: number(breaker['consecutiveFailures'], 5),
      failureRatio: number(window['failureRatio'], 0.5),
      windowSeconds: number(window['seconds'], 60),
      minimumRequests: number(window['minimumRequests'], 10),
      minimumShare: number(window['minimumShare'], 0.1),
      stallOutstanding: number(objectOf(breaker['stall'])['outstanding'], 8),
      mode: String(breaker['mode'] ?? 'off'),
      openMs: number(breaker['openMs'], 15_000),
      maxOpenMs: number(breaker['maxOpenMs'], 120_000),
      probeTimeoutMs: number(objectOf(breaker['halfOpen'])['probeTimeoutMs'], 10_000),
      headersMs: number(timeouts['headersMs'], 5000),
      intervalMs: number(health['intervalMs'], 5000),
      health: health['enabled'] !== false,
      checkTimeoutMs: number(health['timeoutMs'], 1000),
      fall: number(health['fall'], 1),
      rise: number(health['rise'], 1),
      retries: number(retry['retries'], 0),
      maxInFlight: number(shedding['maxInFlight'], 256)
    }
  }
}
