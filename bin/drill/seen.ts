import { setTimeout as sleep } from 'node:timers/promises'
import { objectOf } from '../../config/values.ts'
import { ask, type Admin } from '../admin-client.ts'
import { followEvents, type JournalEvent } from '../cli/event-source.ts'
import { readStatus, type UpstreamStatus } from '../cli/status-read.ts'

const lookMs = 100

/** What a drill saw of the proxy: its journal, and how full its gate was at the most. */
export class Watch {
  readonly events: Array<{ at: number, event: JournalEvent }> = []
  /** Highest of the looks, which are 100 ms apart. */
  peakInFlight = 0
  /** A look found GET /readyz not to be 204. */
  unready = false
  readonly #admin: Admin
  readonly #pool: string
  readonly #stop = new AbortController()
  readonly #done: Promise<unknown>
  #failure: unknown

  constructor (admin: Admin, pool: string, since: number, onEvent: (event: JournalEvent) => void) {
    this.#admin = admin
    this.#pool = pool
    const stopped = this.#stop.signal
    const follow = followEvents(admin, {
      since,
      stopped,
      onTrouble: () => {},
      onEvent: (event) => {
        if (event['pool'] !== pool) return
        this.events.push({ at: performance.now(), event })
        onEvent(event)
      }
    }).catch((error: unknown) => { this.#failure = error })
    this.#done = Promise.allSettled([follow, this.#look()])
  }

  async #look (): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      const [gate, ready] = await Promise.all([ask(this.#admin, 'shedding', { signal }), ask(this.#admin, 'readyz', { signal }, [503])])
      this.peakInFlight = Math.max(this.peakInFlight, Number(objectOf(gate.content)['inFlight']))
      if (ready.status === 503) this.unready = true
      await sleep(lookMs, null, { signal })
    }
  }

  /** The upstreams of the pool as they are now. @throws AdminFailure */
  async upstreams (signal: AbortSignal): Promise<UpstreamStatus[]> {
    const { pools } = await readStatus(this.#admin, signal)
    return pools.find(({ pool }) => pool === this.#pool)?.upstreams ?? []
  }

  /** What has not been seen is no verdict. @throws AdminFailure where the journal could not be followed */
  check (): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Those to open, of one upstream or of all. */
  openings (upstream?: string): Array<{ at: number, event: JournalEvent }> {
    return this.events.filter(({ event }) => event.type === 'breaker_transition' && event['to'] === 'open' && (upstream === undefined || event['upstream'] === upstream))
  }

  /** Whether the proxy had a reason to leave an upstream: an open circuit or failed checks. */
  left (upstream: string): boolean {
    return this.openings(upstream).length > 0 || this.events.some(({ event }) => event.type === 'health_changed' && event['healthy'] === false && event['upstream'] === upstream)
  }

  async end (): Promise<void> {
    this.#stop.abort()
    await this.#done
  }
}

/** Attempts at a pool so far, by outcome, as GET /metrics counts them; null where there are no metrics. @throws AdminFailure */
export async function attemptsOf (admin: Admin, pool: string, signal: AbortSignal): Promise<Map<string, number> | null> {
  const { status, text } = await ask(admin, 'metrics', { accept: 'text/plain', signal }, [404])
  if (status !== 200) return null
  const counts = new Map<string, number>()
  for (const [, labels = '', value] of text.matchAll(/^edge_upstream_requests_total\{([^}]*)\} (\d+)/gm)) {
    const label = (name: string): string => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? ''
    if (label('pool') === pool) counts.set(label('outcome'), (counts.get(label('outcome')) ?? 0) + Number(value))
  }
  return counts
}
