/** A source gave another list, and the pool has taken it. */
export interface DiscoveryChanged {
  readonly type: 'discovery_changed'
  readonly pool: string
  /** Ids that are in the list, and were not before. Both lists are empty where only options changed, as weights. */
  readonly added: readonly string[]
  readonly removed: readonly string[]
  /** How many there are now. */
  readonly members: number
  /** ISO 8601. */
  readonly at: string
}

/** A source does not know its upstreams any more; told once until it does again. */
export interface DiscoveryFailed {
  readonly type: 'discovery_failed'
  readonly pool: string
  readonly error: string
  /** How many members of an earlier list stay in use. */
  readonly keeping: number
  readonly at: string
}

/** The pool could not take what its source gave; told once until it has. It is tried again. */
export interface DiscoveryRefused {
  readonly type: 'discovery_refused'
  readonly pool: string
  readonly error: string
  /** How many members of an earlier list stay in use. */
  readonly keeping: number
  readonly at: string
}

/** The source knows its upstreams, and the pool has them. */
export interface DiscoveryRecovered {
  readonly type: 'discovery_recovered'
  readonly pool: string
  readonly members: number
  readonly at: string
}

/** A list has more upstreams than are used; told once, until one has not. */
export interface DiscoveryCut {
  readonly type: 'discovery_cut'
  readonly pool: string
  readonly given: number
  readonly used: number
  readonly at: string
}

export type DiscoveryEvent = DiscoveryChanged | DiscoveryFailed | DiscoveryRefused | DiscoveryRecovered | DiscoveryCut

/** What is known of a pool's members, and how old that is. */
export interface DiscoveryView {
  readonly pool: string
  readonly kind: 'dns' | 'file' | 'source'
  /** The DNS name, the file's path, or the source's name. */
  readonly from: string
  /** Ids of the members that were discovered, and that the pool has taken. */
  readonly members: readonly string[]
  /** When the source last gave a whole list, a changed one or not; ISO 8601. */
  readonly lastSuccess: string | null
  /** How long ago that was, in ms. */
  readonly ageMs: number | null
  /** Why the pool did not take what its source gave, or else why the source does not know its upstreams now; null where all is well. */
  readonly lastError: Readonly<{ at: string, message: string }> | null
  /** When it looks next; null where that is not known. */
  readonly nextAt: string | null
  /** The members are those of an earlier list, or none have ever come. */
  readonly stale: boolean
}
