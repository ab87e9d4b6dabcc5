import type { Reason } from '../failure.ts'
import type { Entry } from './ring.ts'
import type { Kept, RequestRecord } from './types.ts'

/** Which records; all of them where nothing is said. */
export interface RecordQuery {
  /** Kept for one of these. */
  kept?: Kept | readonly Kept[]
  reason?: Reason
  pool?: string
  /** Id of an upstream that had an attempt, or was a candidate. */
  upstream?: string
  /** Received at this time or later, epoch ms. */
  since?: number
  /** Of those that are alike (kept for the same, of one pool, one reason and one status) the newest alone, which tells of the others. */
  distinct?: boolean
  /** How many at most. Default: 50. */
  limit?: number
}

/** Records that are told by the newest of them. */
export interface Alike {
  /** It and all others. */
  readonly count: number
  /** The newest of them, itself first. */
  readonly requestIds: readonly string[]
}

export type ListedRecord = RequestRecord & { readonly alike?: Alike }

const mostAlike = 10
/** Looking at so many is as much work as reading one. */
const looksInATurn = 200

/**
 * Finds records. There may be a million of them, so it stops at each one that is read, for whoever wants to let others have their turn.
 * @param newest all that are kept, the newest first
 * @param read makes a record of an entry, which is much work next to looking at it
 */
export function* selectRecords (newest: Iterable<Entry>, query: RecordQuery, read: (entry: Entry) => RequestRecord): Generator<undefined, ListedRecord[]> {
  const { reason, pool, upstream, since = 0, distinct = false, limit = 50 } = query
  const kept = query.kept === undefined ? null : [query.kept].flat()
  const isWanted = (entry: Entry): boolean =>
    entry.at >= since && (kept === null || kept.includes(entry.kept)) && (reason === undefined || entry.reason === reason) && (pool === undefined || entry.pool === pool) && mayConcern(entry, upstream)
  const found: ListedRecord[] = []
  const kinds = new Map<string, { count: number, requestIds: string[] }>()
  let looks = 0
  for (const entry of newest) {
    if (!distinct && found.length >= limit) break
    if (++looks % looksInATurn === 0) yield
    if (!isWanted(entry)) continue
    const kind = distinct ? `${entry.kept} ${entry.reason} ${entry.status} ${entry.pool}` : ''
    const alike = kinds.get(kind)
    if (alike === undefined && found.length >= limit) continue
    const record = alike !== undefined && upstream === undefined ? null : read(entry)
    if (record !== null) yield
    if (record !== null && upstream !== undefined && !concerns(record, upstream)) continue
    if (alike !== undefined) {
      alike.count++
      if (alike.requestIds.length < mostAlike) alike.requestIds.push(entry.id)
    } else if (record !== null) {
      if (distinct) kinds.set(kind, { count: 1, requestIds: [entry.id] })
      found.push(distinct ? { ...record, alike: kinds.get(kind) as Alike } : record)
    }
  }
  return found
}

/** A look at the text, before it is read. */
function mayConcern ({ line, note }: Entry, upstream: string | undefined): boolean {
  if (upstream === undefined) return true
  const name = JSON.stringify(upstream)
  return line.includes(name) || note?.text.includes(name) === true
}

/** It had an attempt there, or nobody could be picked and this is one of those that could not. */
function concerns ({ attempts, candidates }: RequestRecord, upstream: string): boolean {
  return attempts.length > 0 ? attempts.some((attempt) => attempt.upstream === upstream) : candidates.some((candidate) => candidate.upstream === upstream)
}
