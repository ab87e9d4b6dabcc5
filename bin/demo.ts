import { startUpstream } from './scripted-upstream.ts'
import type { UpstreamChanges } from './upstream-options.ts'

export interface DemoUpstreams {
  /** Base URLs, ready for a pool: two steady upstreams, then the moody one. */
  urls: string[]
  close (): Promise<void>
}

export interface DemoPhase {
  forMs: number
  faults: UpstreamChanges
}

const well: UpstreamChanges = { failRatio: 0, hang: false }

/**
 * The moody upstream is bad for 15 of every 45 seconds: with 500s in one round, with silence in the next. Its health check
 * passes all the while, for that is what breakers are for. The first bad phase comes early: newcomers wait ten seconds.
 */
export const demoPhases: readonly DemoPhase[] = [
  { forMs: 10_000, faults: well },
  { forMs: 15_000, faults: { failRatio: 1, hang: false } },
  { forMs: 30_000, faults: well },
  { forMs: 15_000, faults: { failRatio: 0, hang: true } },
  { forMs: 20_000, faults: well }
]

/**
 * Starts the upstreams of the demo on free loopback ports: one quick, one with a little latency, one that keeps going bad.
 * @param phases what the moody one goes through, over and over
 * @throws the system's error when a port cannot be opened; then none stays open
 */
export async function startDemoUpstreams (phases: readonly DemoPhase[] = demoPhases): Promise<DemoUpstreams> {
  const started = await Promise.allSettled([
    startUpstream({ name: 'quick' }),
    startUpstream({ name: 'steady', delayMs: 15, jitterMs: 15 }),
    startUpstream({ name: 'moody', delayMs: 2, jitterMs: 5 })
  ])
  const upstreams = started.flatMap(result => result.status === 'fulfilled' ? [result.value] : [])
  const close = async () => {
    clearTimeout(timer)
    await Promise.all(upstreams.map(upstream => upstream.close()))
  }
  let timer: NodeJS.Timeout | undefined
  const failed = started.find(result => result.status === 'rejected')
  if (failed !== undefined) {
    await close()
    throw failed.reason
  }
  const enter = (index: number) => {
    const phase = phases[index % phases.length]
    if (phase === undefined) return
    upstreams[2]?.set(phase.faults)
    timer = setTimeout(enter, phase.forMs, index + 1)
    timer.unref()
  }
  enter(0)
  return { urls: upstreams.map(({ url }) => url), close }
}
