/** Parts that were judged as parts of a whole configuration. They are frozen: what was right about them still is. */
import type { Config } from './schema.ts'

const judged = new WeakSet<object>()

/** Notes the pools and the routes of a configuration that is complete, judged and frozen. */
export function noteJudged ({ pools, routes }: Config): void {
  judged.add(pools)
  judged.add(routes)
}

export const isJudged = (part: unknown): boolean => typeof part === 'object' && part !== null && judged.has(part)
