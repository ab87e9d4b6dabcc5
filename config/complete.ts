/** Single sections of the configuration, completed and judged like the whole of it: for plugins that are registered alone. */
import { Type, type Static, type TSchema } from 'typebox'
import { checkBreaker } from './check-breaker.ts'
import { checkMetrics } from './check-metrics.ts'
import { checkWebhook } from './check-events.ts'
import { checkPools } from './check-pools.ts'
import { checkNamed, fieldNames } from './check-route-fields.ts'
import { checkRoutes } from './check-routes.ts'
import { checkShedding } from './check-server.ts'
import type { Report } from './checks.ts'
import { gather, linesOf, type Problem } from './error.ts'
import { deepFreeze } from './freeze.ts'
import { isJudged } from './judged.ts'
import { joinPath } from './path.ts'
import { resolve } from './resolve.ts'
import { MetricsOptions } from './schema-metrics.ts'
import { BreakerOptions, Config, RateLimitOptions, SheddingOptions, type PoolOptions, type RouteOptions } from './schema.ts'
import { WebhookOptions } from './schema-events.ts'
import { RecorderOptions } from './schema-recorder.ts'
import { checkStructure, rootOf } from './structure.ts'
import { objectOf } from './values.ts'

/** Options as code may give them: any of them may be left out, or undefined. */
export type DeepPartial<T> = T extends object ? { [K in keyof T]?: DeepPartial<T[K]> | undefined } : T

/**
 * A copy of the options of one section with the schema's defaults filled in, frozen.
 * @param name the section's path in the configuration, under which errors tell what is wrong; '' where the input has it
 * @param check judges what the schema cannot
 * @throws TypeError that names each bad option by its path
 */
function completeSection<T extends TSchema> (schema: T, input: unknown, name: string, check: (value: unknown, report: Report) => void = () => {}): Static<T> {
  const root = rootOf(schema)
  const { value, problems } = resolve(input, root, null)
  const below = ({ path, message }: Problem): Problem => ({ path: name === '' ? path : joinPath(name, path), message })
  const meant: Problem[] = []
  const wrong = problems.some(({ path }) => path === '') ? [] : checkStructure(value, root)
  if (problems.length === 0) check(value, (path, message) => { meant.push({ path, message }) })
  const errors = gather(problems.map(below), wrong.map(below), meant)
  if (errors.length > 0) throw new TypeError(`invalid options\n${linesOf(errors)}`)
  return deepFreeze(value) as Static<T>
}

/** @throws TypeError that names each bad option by its path, like `breaker.window.seconds` */
export const completeBreaker = (input: unknown): BreakerOptions =>
  completeSection(BreakerOptions, input, 'breaker', (value, report) => { checkBreaker(objectOf(value), 'breaker', report) })

/** @throws TypeError that names each bad option by its path, like `shedding.maxInFlight` */
export const completeShedding = (input: unknown): SheddingOptions => completeSection(SheddingOptions, input, 'shedding', (value, report) => { checkShedding(objectOf(value), report) })

/** @throws TypeError that names each bad option by its path, like `metrics.durationBuckets` */
export const completeMetrics = (input: unknown): MetricsOptions => completeSection(MetricsOptions, input, 'metrics', (value, report) => { checkMetrics(objectOf(value), report) })

/**
 * Pools by their names. Reads the files that `tls` names.
 * @throws TypeError that names each bad option by its path, like `pools.shop.health.statuses`
 */
export const completePools = (input: unknown): Readonly<Record<string, PoolOptions>> =>
  isJudged(input) ? input as Record<string, PoolOptions> : completeSection(Config.properties.pools, input, 'pools', (value, report) => { checkPools(objectOf(value), report) })

/** @throws TypeError that names each bad option by its path, like `recorder.maxBytes` */
export const completeRecorder = (input: unknown): RecorderOptions => completeSection(RecorderOptions, input, 'recorder')

/** @throws TypeError that names each bad option by its path, like `webhook.url` */
export const completeWebhook = (input: unknown): WebhookOptions => completeSection(WebhookOptions, input, 'webhook', (value, report) => { checkWebhook(objectOf(value), 'webhook', report) })

const routesAlone = Type.Object({ routes: Config.properties.routes }, { additionalProperties: false })

/**
 * A list of routes. Whether the pools that it names are there is not judged.
 * @throws TypeError that names each bad option by its path, like `routes[0].path`
 */
export const completeRoutes = (routes: unknown): readonly RouteOptions[] =>
  isJudged(routes) ? routes as RouteOptions[] : completeSection(routesAlone, { routes }, '', (value, report) => { checkRoutes(objectOf(value)['routes'], null, report) }).routes

/** @throws TypeError that names each bad option by its path, like `rateLimit.max` */
export const completeRateLimit = (input: unknown): RateLimitOptions =>
  completeSection(RateLimitOptions, input, 'rateLimit', (value, report) => { checkNamed(objectOf(value), 'rateLimit', fieldNames({}), report) })
