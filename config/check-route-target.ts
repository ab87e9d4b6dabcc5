/** What is done with the requests of a route: a pool, several, none, and copies to another one. */
import { checkNamed, checkReadField, type FieldNames } from './check-route-fields.ts'
import type { Report } from './checks.ts'
import { keyPath } from './path.ts'
import { nearest } from './suggest.ts'
import { given, objectOf, quoted } from './values.ts'

/** Names of the pools; null where they are not known, for a plugin that is registered alone. */
export type PoolNames = readonly string[] | null

export const didYouMean = (name: string, known: readonly string[]): string => {
  const meant = nearest(name, known)
  return meant === null ? '' : `; did you mean ${JSON.stringify(meant)}?`
}

const checkPool = (pool: unknown, path: string, pools: PoolNames, report: Report): void => {
  if (typeof pool !== 'string' || pool === '' || pools === null || pools.includes(pool)) return
  report(path, `must name a pool (${pools.length === 0 ? 'there is none' : quoted(pools)}), got ${given(pool, '')}${didYouMean(pool, pools)}`)
}

const checkSplit = (split: Record<string, unknown>, path: string, pools: PoolNames, names: FieldNames, report: Report): void => {
  const shares = objectOf(split['pools'])
  for (const pool of Object.keys(shares)) checkPool(pool, keyPath(keyPath(path, 'pools'), pool), pools, report)
  const weights = Object.values(shares)
  if (weights.length > 0 && weights.every(weight => weight === 0)) report(keyPath(path, 'pools'), 'must have a pool with a share above 0, got only shares of 0')
  checkNamed(split, path, names, report)
  checkReadField(split['overrideHeader'], keyPath(path, 'overrideHeader'), names, report)
}

/** The pools that a route names for itself. */
export const poolsOfRoute = (route: Record<string, unknown>): string[] =>
  [...typeof route['pool'] === 'string' ? [route['pool']] : [], ...Object.keys(objectOf(objectOf(route['split'])['pools']))]

const checkDisabled = ({ status, retryAfterSeconds }: Record<string, unknown>, path: string, report: Report): void => {
  if (typeof status === 'number' && status !== 503 && typeof retryAfterSeconds === 'number' && retryAfterSeconds > 0) {
    report(keyPath(path, 'retryAfterSeconds'), `must be 0 unless the status is 503, and that is ${status}`)
  }
}

export const checkTarget = (route: Record<string, unknown>, path: string, pools: PoolNames, names: FieldNames, report: Report): void => {
  const { pool, split, mirror, disabled, rateLimit } = route
  if (pool === undefined && split === undefined && disabled === undefined) report(keyPath(path, 'pool'), 'is required, unless there is split or disabled')
  if (pool !== undefined && split !== undefined) report(keyPath(path, 'split'), 'must not stand beside pool, as it takes its place')
  checkPool(pool, keyPath(path, 'pool'), pools, report)
  if (split !== undefined) checkSplit(objectOf(split), keyPath(path, 'split'), pools, names, report)
  if (disabled !== undefined) checkDisabled(objectOf(disabled), keyPath(path, 'disabled'), report)
  if (rateLimit !== undefined) checkNamed(objectOf(rateLimit), keyPath(path, 'rateLimit'), names, report)
  const copies = objectOf(mirror)['pool']
  const copiesPath = keyPath(keyPath(path, 'mirror'), 'pool')
  checkPool(copies, copiesPath, pools, report)
  if (typeof copies === 'string' && poolsOfRoute(route).includes(copies)) report(copiesPath, `must be another pool than the route's own, got ${given(copies, '')}`)
}
