import type { Report } from './checks.ts'
import { indexPath } from './path.ts'
import { listOf } from './values.ts'

export const checkMetrics = ({ durationBuckets }: Record<string, unknown>, report: Report): void => {
  const bounds = listOf(durationBuckets)
  for (const [index, bound] of bounds.entries()) {
    const before = bounds[index - 1]
    if (typeof bound === 'number' && typeof before === 'number' && bound <= before) report(indexPath('metrics.durationBuckets', index), `must be above the one before (${before}), got ${bound}`)
  }
}
