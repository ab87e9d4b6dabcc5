import { seededRandom } from '../../lib/random.ts'
import { Report } from '../conformance/suite.ts'
import { answers } from './answers.ts'
import { noConnections, type Campaign, type Lane } from './campaign.ts'
import { http2 } from './http2.ts'
import { http2Answers } from './http2-answers.ts'
import { http1, proxyHeaders, tunnels } from './requests.ts'

export const campaigns: readonly Campaign[] = [http1, answers, tunnels, proxyHeaders, http2, http2Answers]

export interface FuzzOptions {
  seed: number
  /** The first step, and the step at which to stop. */
  from: number
  to: number
  /** Ends earlier, at this time of `performance.now()`. */
  until: number
  lanes: number
}

export interface FuzzResult {
  steps: number
  faults: string[]
}

/** A step's own source of numbers: it can be made again without those before it. */
const randomOf = (seed: number, step: number): ReturnType<typeof seededRandom> => seededRandom(Math.imul(seed, 0x9e3779b1) ^ Math.imul(step + 1, 0x85ebca6b))

/**
 * Tells whether this process stood still: both ends of a conversation are in it, so that a client's bytes may come late for its own
 * limits, of which some are 300 ms.
 */
class Pace {
  #at = performance.now()
  #lateAt = -Infinity
  readonly #timer = setInterval(() => {
    const now = performance.now()
    if (now - this.#at > 120) this.#lateAt = now
    this.#at = now
  }, 20)

  wasLateSince (time: number): boolean { return this.#lateAt >= time }
  close (): void { clearInterval(this.#timer) }
}

/** How often a step is made in which the process stood still. */
const mostTries = 5

/** Runs a campaign; stops at twenty faults. */
export async function fuzz (campaign: Campaign, { seed, from, to, until, lanes }: FuzzOptions): Promise<FuzzResult> {
  const report = new Report()
  const faults: string[] = []
  let step = from
  let done = 0
  const atFault = (error: unknown, what: string): void => { faults.push(`${campaign.name}, seed ${seed}, ${what}: ${error instanceof Error ? error.message : String(error)}`) }
  const onUncaught = (error: unknown): void => { atFault(error instanceof Error ? new Error(error.stack) : error, `uncaught, around step ${step}`) }
  process.on('uncaughtException', onUncaught)
  const pace = new Pace()
  try {
    const open = await Promise.all(Array.from({ length: Math.min(lanes, to - from) }, () => campaign.open(report)))
    const work = async (lane: Lane): Promise<void> => {
      while (step < to && faults.length < 20 && performance.now() < until) {
        const own = step++
        for (let tries = 1; ; tries++) {
          const begunAt = performance.now()
          const fault: unknown = await lane.step(randomOf(seed, own)).then(() => null, (error: unknown) => error ?? new Error('nothing thrown'))
          // One turn later at the latest a timer has seen it.
          if (fault !== null) await new Promise((resolve) => { setTimeout(resolve, 30) })
          if (fault !== null && tries < mostTries && pace.wasLateSince(begunAt)) continue
          if (fault !== null) atFault(fault, `step ${own}`)
          break
        }
        done++
        // What was logged is not needed any more, and a long run makes much of it.
        if (own % 50 === 0) lane.gateway.lines.lines.length = 0
      }
    }
    await Promise.all(open.map(work))
    for (const { gateway } of open) await noConnections(gateway).catch((error: unknown) => { atFault(error, 'at the end') })
  } finally {
    await report.close()
    pace.close()
    process.off('uncaughtException', onUncaught)
  }
  return { steps: done, faults }
}
