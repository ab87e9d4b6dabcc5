import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../lib/clock.ts'
import { checkOptions } from '../../lib/health/options.ts'
import { checkTarget } from '../../lib/health/target.ts'
import type { Upstream, UpstreamPool } from '../upstream-pools.ts'
import type { Subject } from './checker.ts'

/** What is checked at a member of the pool, and how. */
export function subjectOf ({ options }: UpstreamPool, upstream: Upstream, clock: Clock): Subject {
  const checks = checkOptions(options.health, upstream.options.health)
  const { url, host } = upstream
  return { url, settings: upstream.connector(), target: checkTarget(url, host, checks.port), http2: upstream.http2, options: checks, keepAliveMs: options.connections.keepAliveMs, clock }
}

/** Whether both are checked in the same way. */
export function isSameSubject (one: Subject, other: Subject): boolean {
  return one.target.origin === other.target.origin && one.target.host === other.target.host && one.keepAliveMs === other.keepAliveMs && one.http2 === other.http2 &&
    isDeepStrictEqual(one.url, other.url) && isDeepStrictEqual(one.options, other.options) && areSameSettings(one.settings, other.settings)
}

/** Settings are texts and flags, but for the look-up of an address that is known already, which is in the upstream's id. */
function areSameSettings (one: Subject['settings'], other: Subject['settings']): boolean {
  const names = Object.keys(one) as Array<keyof Subject['settings']>
  return names.length === Object.keys(other).length && names.every((name) => name in other && (name === 'lookup' || one[name] === other[name]))
}
