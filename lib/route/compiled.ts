import type { RouteOptions } from '../../config/schema.ts'
import { systemRandom, type Random } from '../random.ts'
import { Conditions } from './conditions.ts'
import { requestChange, responseChange, type RequestChange, type ResponseChange } from './header-changes.ts'
import { compileRewrite, forwardedPath, type Rewrite } from './rewrite.ts'
import { Split, type SplitFacts } from './split.ts'

/** A route made ready once, when it is loaded, so that nothing is worked out for a request twice. It keeps no state. */
export class CompiledRoute {
  readonly options: RouteOptions
  /** Its place in the configuration. */
  readonly index: number
  /** The configured path: what the log and the metrics call it. */
  readonly label: string
  /** The one pool that it goes to; null where `split` decides, or the route is disabled and has none. */
  readonly pool: string | null
  readonly split: Split | null
  readonly conditions: Conditions | null
  readonly changeRequest: RequestChange | null
  readonly changeResponse: ResponseChange | null
  readonly #rewrite: Rewrite | null

  /**
   * @param options checked ones, with their defaults
   * @param random where a split by request draws from
   */
  constructor (options: RouteOptions, index = 0, random: Random = systemRandom) {
    const { path, pool, split, rewrite, requestHeaders, responseHeaders } = options
    this.options = options
    this.index = index
    this.label = path
    this.pool = pool ?? null
    this.split = split === undefined ? null : new Split(split, random)
    this.conditions = Conditions.of(options)
    this.changeRequest = requestChange(requestHeaders)
    this.changeResponse = responseChange(responseHeaders)
    this.#rewrite = rewrite === undefined ? null : compileRewrite(path, rewrite)
  }

  /**
   * The pool of a request; to be asked once for each, as a split may draw.
   * @throws Error for a disabled route without a pool, which forwards nothing
   */
  poolFor (facts: SplitFacts): string {
    if (this.pool !== null) return this.pool
    if (this.split === null) throw new Error(`the route ${this.label} has no pool: it is disabled`)
    return this.split.poolFor(facts)
  }

  /**
   * The path that an upstream gets, made of the request's own each time, so that nothing is applied twice.
   * @param path without the query; `*` stays
   * @param basePath the upstream's, or ''
   */
  path (path: string, basePath: string): string {
    if (this.#rewrite === null) return forwardedPath(path, this.options.stripPrefix, this.options.prefix, basePath)
    return path === '*' ? path : basePath + this.#rewrite(path)
  }
}

/** The pools that a route's requests may go to by themselves; none for a disabled one. */
export function poolsOf ({ pool, split, disabled }: RouteOptions): string[] {
  if (disabled !== undefined) return []
  if (pool !== undefined) return [pool]
  return Object.entries(split?.pools ?? {}).filter(([, weight]) => weight > 0).map(([name]) => name)
}
