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

/** Runs a campaign; stops at twenty faults. */
export async function fuzz (campaign: Campaign, { seed, from, to, until, lanes }: FuzzOptions): Promise<FuzzResult> {
  const report = new Report()
  const faults: string[] = []
  let step = from
  let done = 0
  const atFault = (error: unknown, what: string): void => { faults.push(`${campaign.name}, seed ${seed}, ${what}: ${error instanceof Error ? error.message : String(error)}`) }
  const onUncaught = (error: unknown): void => { atFault(error instanceof Error ? new Error(error.stack) : error, `uncaught, around step ${step}`) }
  process.on('uncaughtException', onUncaught)
  try {
    const open = await Promise.all(Array.from({ length: Math.min(lanes, to - from) }, () => campaign.open(report)))
    const work = async (lane: Lane): Promise<void> => {
      while (step < to && faults.length < 20 && performance.now() < until) {
        const own = step++
        await lane.step(randomOf(seed, own)).catch((error: unknown) => { atFault(error, `step ${own}`) })
        done++
        // What was logged is not needed any more, and a long run makes much of it.
        if (own % 50 === 0) lane.gateway.lines.lines.length = 0
      }
    }
    await Promise.all(open.map(work))
    for (const { gateway } of open) await noConnections(gateway).catch((error: unknown) => { atFault(error, 'at the end') })
  } finally {
    await report.close()
    process.off('uncaughtException', onUncaught)
  }
  return { steps: done, faults }
}
