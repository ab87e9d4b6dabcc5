import type { ConfigDiff, UpstreamName } from '../config/diff.ts'
import { joinPath, keyPath } from '../config/path.ts'
import { routeLabel } from '../config/route-label.ts'
import type { RouteOptions } from '../config/schema.ts'
import { isObject, listOf, objectOf } from '../config/values.ts'
import { upstreamId } from '../lib/upstream-url.ts'

/** Exchanges that are under way at upstreams which a change touches. */
export type InFlight = readonly (UpstreamName & { inFlight: number })[]

const step = /\.?([\w-]+)|\["((?:[^"\\]|\\.)*)"\]/g

/** The value at a path as config/path.ts writes it; undefined where there is none. */
function valueAt (tree: unknown, path: string): unknown {
  let value = tree
  for (const [, plain, quoted] of path.matchAll(step)) {
    const key = plain ?? JSON.parse(`"${quoted}"`) as string
    value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
  }
  return value
}

const maxShown = 60

function textOf (value: unknown): string {
  if (value === undefined) return 'not set'
  const text = JSON.stringify(value)
  return text.length > maxShown ? `${text.slice(0, maxShown)}...` : text
}

const routeAt = (config: unknown, label: string): unknown =>
  listOf(objectOf(config)['routes']).find((route) => isObject(route) && routeLabel(route as RouteOptions) === label)

const poolAt = (config: unknown, pool: string): Record<string, unknown> => objectOf(objectOf(objectOf(config)['pools'])[pool])

const upstreamAt = (config: unknown, { pool, upstream }: UpstreamName): unknown =>
  listOf(poolAt(config, pool)['upstreams']).find((each) => upstreamId(String(objectOf(each)['url'])) === upstream)

/** Says what differs, with the values of both sides where they are known. */
class DiffText {
  readonly #before: unknown
  readonly #after: unknown
  readonly #inFlight: InFlight

  constructor (before: unknown, after: unknown, inFlight: InFlight) {
    this.#before = before
    this.#after = after
    this.#inFlight = inFlight
  }

  /** `5000 -> 3000` for a path below a part of the configuration; '' where a side is not known, or holds a secret. */
  #values (path: string, part: (config: unknown) => unknown): string {
    if (this.#before === null) return ''
    const [one, other] = [this.#before, this.#after].map((config) => textOf(valueAt(part(config), path)))
    return one === other ? '' : `${one} -> ${other}`
  }

  #change (path: string, part: (config: unknown) => unknown = (config) => config): string {
    return `${path} ${this.#values(path, part) || 'changes'}`
  }

  #upstream ({ pool, upstream }: UpstreamName): string {
    const count = this.#inFlight.find((each) => each.pool === pool && each.upstream === upstream)?.inFlight ?? 0
    return `upstream ${upstream} in pool ${pool}${count === 0 ? '' : ` (${count} ${count === 1 ? 'exchange' : 'exchanges'} in flight)`}`
  }

  members ({ pools, upstreams }: ConfigDiff): string[] {
    return [
      ...pools.added.map((pool) => `+ pool ${pool}`),
      ...pools.removed.map((pool) => `- pool ${pool}`),
      ...upstreams.added.map((each) => `+ ${this.#upstream(each)}`),
      ...upstreams.removed.map((each) => `- ${this.#upstream(each)}`),
      ...upstreams.changed.map((each) => {
        const changes = each.options.map((path) => this.#change(path, (config) => upstreamAt(config, each)))
        return `~ ${this.#upstream(each)}: ${[...changes, ...each.reconnects ? ['new connections'] : []].join(', ')}`
      }),
      ...pools.changed.flatMap(({ pool, options }) => options.map((path) => `~ ${this.#change(joinPath(keyPath('pools', pool), path))}`))
    ]
  }

  routes ({ routes: { added, removed, changed, reordered } }: ConfigDiff): string[] {
    return [
      ...added.map((route) => `+ route ${route}`),
      ...removed.map((route) => `- route ${route}`),
      ...changed.map(({ route, options }) => `~ route ${route}: ${options.map((path) => this.#change(path, (config) => routeAt(config, route))).join(', ')}`),
      ...reordered ? ['~ routes come in another order'] : []
    ]
  }

  options ({ shedding, other, needsRestart }: ConfigDiff): string[] {
    const values = (path: string): string => this.#values(path, (config) => config)
    return [
      ...shedding.map((path) => `~ ${this.#change(`shedding.${path}`)}`),
      ...other.map((path) => `~ ${this.#change(path)}`),
      ...needsRestart.map((path) => `! ${path} needs a restart${values(path) === '' ? '' : ` (${values(path)})`}`)
    ]
  }
}

/**
 * A difference for people, a line for each: `+` comes, `-` goes, `~` changes while running, `!` needs a restart.
 * @param before the configurations without their secrets; null where it is not known
 */
export function diffLines (diff: ConfigDiff, before: unknown, after: unknown, inFlight: InFlight = []): string[] {
  if (diff.same) return ['nothing would change']
  const text = new DiffText(before, after, inFlight)
  return [...text.members(diff), ...text.routes(diff), ...text.options(diff)]
}
