import findMyWay from 'find-my-way'
import type { CompiledRoute } from './compiled.ts'
import type { RequestFacts } from './conditions.ts'
import { compareConditions, matchedBy, methodsOf, shapeOf, tierOf, type MatchedBy } from './order.ts'

/** What a route decided for one request. */
export interface RouteMatch {
  readonly route: CompiledRoute
  readonly by: MatchedBy
}

/** A route at one place of the tree. */
export interface Entry extends RouteMatch {
  readonly tier: number
  /** "/api/*" at the place of "/api". */
  readonly bare: boolean
  /** Null: all. */
  readonly methods: ReadonlySet<string> | null
  /** HEAD for the sake of GET: a route that names HEAD goes first. */
  readonly implied: boolean
}

/** Walks the places that match a path, best one first. */
export interface Visitor {
  /** The routes at a place, best one first. True: enough was seen. */
  visit (entries: readonly Entry[]): boolean
}

/** Finds the first entry that takes a request, in the order of the rules. */
export class FirstMatch implements Visitor {
  readonly #facts: RequestFacts
  best: Entry | null = null
  /** An entry of this tier or a lower one cannot be outranked by one at a later place. */
  lastTier = 3

  constructor (facts: RequestFacts) {
    this.#facts = facts
  }

  visit (entries: readonly Entry[]): boolean {
    const facts = this.#facts
    for (const entry of entries) {
      if (this.best !== null && entry.tier >= this.best.tier) break
      if (entry.methods !== null && !entry.methods.has(facts.method)) continue
      const { conditions } = entry.route
      if (conditions !== null && !conditions.holds(facts)) continue
      this.best = entry
      break
    }
    return this.best !== null && this.best.tier <= this.lastTier
  }
}

/** Collects every entry at every place. */
export class AllEntries implements Visitor {
  readonly entries: Entry[] = []

  visit (entries: readonly Entry[]): boolean {
    this.entries.push(...entries)
    return false
  }
}

/**
 * How a visitor gets into the tree: find-my-way asks the store of each place on its way whether the request meets the constraint
 * there, and goes on to the next best place where it does not (its custom constraint strategies).
 */
class PlaceStore {
  #entries: readonly Entry[] = []
  #mask = 0

  set (entries: readonly Entry[], mask: number): void {
    this.#entries = entries
    this.#mask = mask
  }

  /** While the tree is built it asks with the entries. */
  get (asked: readonly Entry[] | Visitor): number {
    if (isList(asked)) return this.#mask
    return asked.visit(this.#entries) ? this.#mask : 0
  }
}

const isList = (asked: readonly Entry[] | Visitor): asked is readonly Entry[] => Array.isArray(asked)

// The router keeps handlers by method; methods are judged at the places, so one stands for all.
const anyMethod = 'GET'
const strategy = () => ({ name: 'place', storage: () => new PlaceStore() as never, deriveConstraint: () => undefined as never, mustMatchWhenDerived: false })

/** The routes of one host, or of all. */
export class HostRoutes {
  // The longest parameter is as long as the longest head may be configured to be: length is not what a route is chosen by.
  readonly #router = findMyWay({ caseSensitive: true, ignoreTrailingSlash: false, ignoreDuplicateSlashes: false, maxParamLength: 1048576, constraints: { place: strategy() } })
  readonly #lastTier: number

  constructor (routes: readonly CompiledRoute[]) {
    const places = new Map<string, Entry[]>()
    for (const route of routes) {
      const shape = shapeOf(route.options.path)
      for (const entry of entriesOf(route, false)) put(places, shape, entry)
      if (!shape.endsWith('/*') || shape === '/*') continue
      for (const entry of entriesOf(route, true)) put(places, shape.slice(0, -2), entry)
    }
    for (const [shape, entries] of places) {
      entries.sort(compareEntries)
      this.#router.on(anyMethod, named(shape), { constraints: { place: entries } } as never, noop)
    }
    this.#lastTier = routes.some(({ options }) => tierOf(options) === 2) ? 2 : 3
  }

  /** @param path the path as it came, without the query */
  match (path: string, first: FirstMatch): RouteMatch | null {
    first.best = null
    first.lastTier = this.#lastTier
    this.#router.find(anyMethod, path, { place: first } as never)
    return first.best
  }

  /** All routes for this path, whatever else they ask for, in the order in which they are tried. */
  at (path: string): Entry[] {
    const all = new AllEntries()
    this.#router.find(anyMethod, path, { place: all } as never)
    return all.entries.toSorted((a, b) => a.tier - b.tier)
  }
}

/** HEAD stands apart, as a route that names it goes before one that has it for GET's sake. */
function entriesOf (route: CompiledRoute, bare: boolean): Entry[] {
  const { options } = route
  const [by, tier, methods] = [matchedBy(options), tierOf(options), methodsOf(options)]
  const entry = (own: ReadonlySet<string> | null, implied: boolean): Entry => Object.freeze({ route, by, tier, bare, methods: own, implied })
  if (methods === null || options.methods?.includes('HEAD') === true || !methods.has('HEAD')) return [entry(methods, false)]
  return [entry(new Set(options.methods), false), entry(new Set(['HEAD']), true)]
}

function put (places: Map<string, Entry[]>, shape: string, entry: Entry): void {
  const entries = places.get(shape)
  if (entries === undefined) places.set(shape, [entry])
  else entries.push(entry)
}

/** At one place. */
function compareEntries (a: Entry, b: Entry): number {
  return a.tier - b.tier || Number(a.bare) - Number(b.bare) || compareConditions(a.route, b.route) || Number(a.implied) - Number(b.implied) || a.route.index - b.route.index
}

/** The router wants names for parameters; what they are called is the routes' own. */
function named (shape: string): string {
  let count = 0
  return shape.replaceAll('/:', () => `/:p${count++}`)
}

function noop (): void {}
