import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type {} from '../upstream-pools.ts'

/** How long new pools are waited for at most, in ms. */
const warmMs = 10000
const stepMs = 10

/**
 * Waits until each of these pools, new ones, has somebody to ask, or has been looked at as a whole: routes that lead to it are
 * swapped in then, and meet no pool that nobody has ever seen.
 */
export async function warm (app: FastifyInstance, names: readonly string[]): Promise<void> {
  const cold = (name: string): boolean => {
    const pool = app.pools.get(name)
    if (pool === undefined || pool.upstreams.some(({ healthy, draining }) => healthy && !draining)) return false
    return pool.upstreams.length === 0 ? pool.options.discovery !== undefined : pool.upstreams.some(({ checked }) => !checked)
  }
  for (let waited = 0; waited < warmMs && names.some(cold); waited += stepMs) await sleep(stepMs, undefined, { ref: false })
}
