import { checkHash, checkSticky } from './check-balance.ts'
import { checkBreaker, checkEjection, checkPanic } from './check-breaker.ts'
import { checkDiscovery, mayBringTls } from './check-discovery.ts'
import { checkHealth } from './check-health.ts'
import { checkHttp2 } from './check-http2.ts'
import { checkDeadlineHeader, checkRetry } from './check-retry.ts'
import { fieldNames, type FieldNames } from './check-route-fields.ts'
import { checkTls } from './check-tls.ts'
import { checkUpstreams } from './check-upstreams.ts'
import type { Report } from './checks.ts'
import { keyPath } from './path.ts'
import { objectOf } from './values.ts'

const sections: Record<string, (section: Record<string, unknown>, path: string, report: Report) => void> = {
  sticky: checkSticky,
  discovery: checkDiscovery,
  health: checkHealth,
  breaker: checkBreaker,
  ejection: checkEjection,
  panic: checkPanic,
  retry: checkRetry,
  tls: checkTls
}

const checkPool = (pool: Record<string, unknown>, path: string, names: FieldNames, report: Report): void => {
  const parsed = checkUpstreams(pool, path, report)
  checkHash(pool, path, names, report)
  for (const [name, check] of Object.entries(sections)) {
    if (pool[name] !== undefined) check(objectOf(pool[name]), keyPath(path, name), report)
  }
  checkDeadlineHeader(pool['deadlineHeader'], keyPath(path, 'deadlineHeader'), names, report)
  const { discovery, tls, http2 } = pool
  checkHttp2(http2, path, parsed, mayBringTls(discovery), report)
  const known = parsed.length > 0 || discovery !== undefined
  if (tls !== undefined && known && !mayBringTls(discovery) && parsed.every(upstream => upstream !== null && !upstream.secure)) {
    report(keyPath(path, 'tls'), 'is only for pools with an https upstream, and this one has none')
  }
}

/** @param server the options of the listener, of which some names of header fields are known; left out: the defaults */
export const checkPools = (pools: Record<string, unknown>, report: Report, server: Record<string, unknown> = {}): void => {
  const names = fieldNames(server)
  for (const [name, pool] of Object.entries(pools)) checkPool(objectOf(pool), keyPath('pools', name), names, report)
}
