import type { Report } from './checks.ts'
import { keyPath } from './path.ts'

/** Reports a cap that is below what it caps. */
export const checkOrder = (section: Record<string, unknown>, path: string, low: string, high: string, report: Report): void => {
  const least = section[low]
  const most = section[high]
  if (typeof least === 'number' && typeof most === 'number' && most < least) {
    report(keyPath(path, high), `must be at least ${keyPath(path, low)} (${least}), got ${most}`)
  }
}
