import createError from '@fastify/error'
import { completeMembers } from '../../config/upstream-list.ts'
import type { DiscoveredUpstream } from '../../lib/discovery/members.ts'
import type { DiscoverySource } from './source.ts'

const SourceExists = createError('BREAKWATER_SOURCE_EXISTS', 'There is a discovery source "%s" already', 500, TypeError)

/** Who follows a source: a pool. */
interface Subscriber {
  report: (members: readonly DiscoveredUpstream[], incomplete?: Error) => void
  fail: (error: Error) => void
}

/** A source by its name, provided or not yet, and shared by the pools that name it. */
class NamedSource {
  readonly name: string
  readonly #subscribers = new Set<Subscriber>()
  #source: DiscoverySource | null = null
  /** Tells one run from the next: a late report is none. */
  #run: object | null = null
  /** Tells a newcomer what was said last. */
  #last: ((to: Subscriber) => void) | null = null

  constructor (name: string) {
    this.name = name
  }

  get nextAt (): number | null {
    return this.#source?.nextAt ?? null
  }

  provide (source: DiscoverySource): void {
    if (this.#source !== null) throw new SourceExists(this.name)
    this.#source = source
    if (this.#subscribers.size > 0) this.#start(source)
  }

  add (subscriber: Subscriber): void {
    this.#subscribers.add(subscriber)
    if (this.#source === null) subscriber.fail(new Error(`no source "${this.name}" is provided`))
    else if (this.#run === null) this.#start(this.#source)
    else this.#last?.(subscriber)
  }

  async remove (subscriber: Subscriber): Promise<void> {
    if (!this.#subscribers.delete(subscriber) || this.#subscribers.size > 0 || this.#run === null) return
    this.#run = null
    this.#last = null
    await this.#source?.stop()
  }

  refresh (): void {
    if (this.#run !== null) this.#source?.refresh?.()
  }

  #start (source: DiscoverySource): void {
    const run = {}
    this.#run = run
    const tell = (what: (to: Subscriber) => void): void => {
      if (this.#run !== run) return
      this.#last = what
      for (const subscriber of Array.from(this.#subscribers)) what(subscriber)
    }
    const fail = (error: Error): void => { tell((to) => { to.fail(error) }) }
    try {
      source.start((given, incomplete) => {
        try {
          // A copy: what the source does with its list afterwards is its own matter.
          const members = completeMembers(given, `the source "${this.name}"`)
          tell((to) => { to.report(members, incomplete) })
        } catch (error) {
          fail(error as Error)
        }
      }, fail)
    } catch (error) {
      fail(error as Error)
    }
  }
}

/** The sources that others provide, by their names. */
export class NamedSources {
  readonly #byName = new Map<string, NamedSource>()

  /** @throws BREAKWATER_SOURCE_EXISTS for a name that has a source */
  provide (name: string, source: DiscoverySource): void {
    this.#named(name).provide(source)
  }

  /** The source as one pool sees it. */
  follow (name: string): DiscoverySource {
    const named = this.#named(name)
    let subscriber: Subscriber | null = null
    return {
      start (report, fail) {
        subscriber = { report, fail }
        named.add(subscriber)
      },
      async stop () {
        if (subscriber !== null) await named.remove(subscriber)
      },
      refresh () { named.refresh() },
      get nextAt () { return named.nextAt }
    }
  }

  #named (name: string): NamedSource {
    let named = this.#byName.get(name)
    if (named === undefined) this.#byName.set(name, named = new NamedSource(name))
    return named
  }
}
