import { setImmediate } from 'node:timers/promises'
import type { Registry } from 'prom-client'

/** Samples of a piece: some milliseconds of work. */
const samplesAtOnce = 1000

export type Labels = Readonly<Record<string, string>>

/** A request that was counted, for who wants to see one. */
export interface ExemplarSample {
  readonly labelSet: Labels
  readonly value: number
  /** Seconds since 1970. */
  readonly timestamp: number
}

/** One line of the exposition, as prom-client takes it. */
export interface Sample {
  readonly labels: Labels
  readonly value: number
  /** Where it is not the family's own. */
  readonly metricName?: string
  readonly exemplar?: ExemplarSample | null
}

export type FamilyType = 'counter' | 'gauge' | 'histogram'

/** What a registry of prom-client asks of a metric. */
export interface FamilyContent {
  readonly name: string
  readonly help: string
  readonly type: FamilyType
  readonly values: Sample[]
  readonly aggregator: 'sum'
}

/**
 * All series of one name, read when somebody asks: what counts them keeps plain numbers and knows nothing of labels. To a registry of
 * prom-client it is a metric like those of its own.
 */
export class Family {
  readonly name: string
  readonly help: string
  readonly type: FamilyType
  readonly #read: () => Iterable<Sample>

  /**
   * @param name of a counter: ends with `_total`
   * @param read a series that is not among what it gives does not exist; the app may change before all of it has been taken
   */
  constructor (type: FamilyType, name: string, help: string, read: () => Iterable<Sample>) {
    this.type = type
    this.name = name
    this.help = help
    this.#read = read
  }

  async get (): Promise<FamilyContent> {
    const { name, help, type } = this
    return { name, help, type, values: [...this.#read()], aggregator: 'sum' }
  }

  /** The same in pieces, between which others have their turn; the first one may be empty. A table of thousands of routes has megabytes of series. */
  async * pieces (): AsyncIterableIterator<FamilyContent> {
    const { name, help, type } = this
    let values: Sample[] = []
    for (const sample of this.#read()) {
      if (values.length === samplesAtOnce) {
        yield { name, help, type, values, aggregator: 'sum' }
        await setImmediate()
        values = []
      }
      values.push(sample)
    }
    yield { name, help, type, values, aggregator: 'sum' }
  }

  /** What is counted is never set back: other code may read it. */
  reset (): void {}
}

export function register (registry: Registry, families: readonly Family[]): void {
  for (const family of families) registry.registerMetric(family as never)
}

/** A series without labels. */
export const single = (value: number): Sample[] => [{ labels: {}, value }]
