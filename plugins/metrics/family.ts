import type { Registry } from 'prom-client'

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
   * @param read a series that is not among what it gives does not exist
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

  /** What is counted is never set back: other code may read it. */
  reset (): void {}
}

export function register (registry: Registry, families: readonly Family[]): void {
  for (const family of families) registry.registerMetric(family as never)
}

/** A series without labels. */
export const single = (value: number): Sample[] => [{ labels: {}, value }]
