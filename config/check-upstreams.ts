import { parseUpstreamUrl, type UpstreamUrl } from '../lib/upstream-url.ts'
import { checkHealthPath } from './check-health.ts'
import type { Report } from './checks.ts'
import { indexPath, keyPath } from './path.ts'
import { listOf, objectOf } from './values.ts'

/** What is understood of an upstream's URL, or null. */
const checkUrl = (url: unknown, path: string, report: Report): UpstreamUrl | null => {
  if (typeof url !== 'string' || url === '') return null
  try {
    return parseUpstreamUrl(url)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    report(path, error.message)
    return null
  }
}

const checkWeight = (weight: unknown, path: string, balancer: unknown, report: Report): void => {
  if (balancer !== 'round-robin' || typeof weight !== 'number' || weight <= 1) return
  report(path, `must be 0 or 1 with balancer: round-robin, which gives all the same, got ${weight}; balancer: weighted goes by it`)
}

/** Unlike the pool's own checks, these have no defaults: whatever is there was written by somebody, and must have a use. */
const checkOwnHealth = (health: Record<string, unknown>, path: string, url: UpstreamUrl | null, type: unknown, report: Report): void => {
  checkHealthPath(health['path'], keyPath(path, 'path'), report)
  if (health['path'] !== undefined && type === 'tcp') report(keyPath(path, 'path'), 'is not used by health checks of type tcp')
  if (health['port'] !== undefined && url !== null && url.socketPath !== null) report(keyPath(path, 'port'), 'is not for the upstream of a unix socket')
}

/** The upstreams of a pool whose URL could be understood, in order; null for the others. */
export const checkUpstreams = (pool: Record<string, unknown>, poolPath: string, report: Report): (UpstreamUrl | null)[] => {
  const path = keyPath(poolPath, 'upstreams')
  const upstreams = listOf(pool['upstreams']).map(objectOf)
  const discovered = pool['discovery'] !== undefined
  if (Array.isArray(pool['upstreams']) && upstreams.length === 0 && !discovered) report(path, 'must be a list of at least 1, as there is no discovery, got none')
  if (upstreams.length > 0 && !discovered && upstreams.every(({ weight }) => weight === 0)) {
    report(path, 'must have an upstream with a weight above 0, got only weights of 0')
  }
  const first = new Map<string, number>()
  return upstreams.map((upstream, index) => {
    const place = indexPath(path, index)
    const url = checkUrl(upstream['url'], keyPath(place, 'url'), report)
    const earlier = url === null ? undefined : first.get(url.id)
    if (url !== null && earlier !== undefined) report(keyPath(place, 'url'), `is the same upstream (${url.id}) as ${keyPath(indexPath(path, earlier), 'url')}`)
    else if (url !== null) first.set(url.id, index)
    checkWeight(upstream['weight'], keyPath(place, 'weight'), pool['balancer'], report)
    checkOwnHealth(objectOf(upstream['health']), keyPath(place, 'health'), url, objectOf(pool['health'])['type'], report)
    return url
  })
}
