import { parseUpstreamUrl, type UpstreamUrl } from '../lib/upstream-url.ts'
import { checkTls } from './check-tls.ts'
import type { Report } from './checks.ts'
import { indexPath, keyPath } from './path.ts'
import { given, listOf, objectOf } from './values.ts'

/** The upstreams of a pool whose URL could be understood, in order; null for the others. */
const checkUpstreams = (upstreams: unknown[], path: string, report: Report): (UpstreamUrl | null)[] => {
  const first = new Map<string, number>()
  return upstreams.map((upstream, index) => {
    const { url } = objectOf(upstream)
    const urlPath = keyPath(indexPath(path, index), 'url')
    if (typeof url !== 'string' || url === '') return null
    try {
      const parsed = parseUpstreamUrl(url)
      const earlier = first.get(parsed.id)
      if (earlier === undefined) first.set(parsed.id, index)
      else report(urlPath, `is the same upstream (${parsed.id}) as ${keyPath(indexPath(path, earlier), 'url')}`)
      return parsed
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      report(urlPath, error.message)
      return null
    }
  })
}

const checkHealth = (health: Record<string, unknown>, path: string, report: Report): void => {
  const [low, high] = listOf(health['statuses'])
  if (typeof low === 'number' && typeof high === 'number' && low > high) {
    report(keyPath(path, 'statuses'), `must be a range from low to high, got [${low}, ${high}]`)
  }
  const probe = health['path']
  if (typeof probe === 'string' && !/^[\x21\x22\x24-\x7e]*$/.test(probe)) {
    report(keyPath(path, 'path'), `must be of visible ASCII characters without "#", others percent-encoded, got ${given(probe, '')}`)
  }
}

export const checkBreaker = (breaker: Record<string, unknown>, path: string, report: Report): void => {
  const { openMs, maxOpenMs } = breaker
  if (typeof openMs === 'number' && typeof maxOpenMs === 'number' && maxOpenMs < openMs) {
    report(keyPath(path, 'maxOpenMs'), `must be at least ${keyPath(path, 'openMs')} (${openMs}), got ${maxOpenMs}`)
  }
}

const checkPool = (pool: Record<string, unknown>, path: string, report: Report): void => {
  const upstreams = listOf(pool['upstreams'])
  const parsed = checkUpstreams(upstreams, keyPath(path, 'upstreams'), report)
  if (upstreams.length > 0 && upstreams.every(upstream => objectOf(upstream)['weight'] === 0)) {
    report(keyPath(path, 'upstreams'), 'must have an upstream with a weight above 0, got only weights of 0')
  }
  checkHealth(objectOf(pool['health']), keyPath(path, 'health'), report)
  checkBreaker(objectOf(pool['breaker']), keyPath(path, 'breaker'), report)
  if (pool['tls'] === undefined) return
  if (parsed.length > 0 && parsed.every(upstream => upstream !== null && !upstream.secure)) {
    report(keyPath(path, 'tls'), 'is only for pools with an https upstream, and this one has none')
  }
  checkTls(objectOf(pool['tls']), keyPath(path, 'tls'), report)
}

export const checkPools = (pools: Record<string, unknown>, report: Report): void => {
  for (const [name, pool] of Object.entries(pools)) checkPool(objectOf(pool), keyPath('pools', name), report)
}
