/** What resolvers said about names, and what follows from it for the addresses that are in use. */

export type Family = 'ipv4' | 'ipv6'

/** What was said about one family of a name's addresses. */
export type Answer =
  | { readonly kind: 'found', readonly addresses: readonly string[], /** null: not told. */ readonly ttlMs: number | null }
  /** A good answer: there is none. */
  | { readonly kind: 'none', readonly why: string }
  /** No good answer: nothing is known. `late`: there was none at all in time. */
  | { readonly kind: 'failed', readonly why: string, readonly late: boolean }

/** A family that was not asked for is left out. */
export type NameAnswer = { readonly [K in Family]?: Answer }

/** The addresses of a name, by family. */
export type Addresses = { readonly [K in Family]: readonly string[] }

export interface Settled {
  readonly addresses: Addresses
  /** The shortest life of what was found; null where that is not told. */
  readonly ttlMs: number | null
  /** Some family has addresses by this answer, not by an earlier one. */
  readonly found: boolean
  /** Addresses of an earlier answer that are kept, as this one says nothing about their family. */
  readonly retained: number
  /** Why a family is not known. */
  readonly failed: string | null
  /** Why there is none, where that is so. */
  readonly none: string | null
}

export const noAddresses: Addresses = { ipv4: [], ipv6: [] }

const families: readonly Family[] = ['ipv4', 'ipv6']

/** The shorter of two lives. */
export const shorter = (one: number | null, other: number | null): number | null =>
  one === null ? other : other === null ? one : Math.min(one, other)

/**
 * The addresses after an answer. A family that could not be asked keeps those it had: half of a pool must not go because one of
 * two questions failed.
 * @param before the addresses so far; none where nothing may be kept
 */
export function settle (before: Addresses, answer: NameAnswer): Settled {
  const addresses: Record<Family, readonly string[]> = { ipv4: [], ipv6: [] }
  let ttlMs: number | null = null
  let found = false
  let retained = 0
  let failed: string | null = null
  let none: string | null = null
  for (const family of families) {
    const each = answer[family]
    if (each === undefined) continue
    if (each.kind === 'found') {
      addresses[family] = each.addresses
      ttlMs = shorter(ttlMs, each.ttlMs)
      found ||= each.addresses.length > 0
    } else if (each.kind === 'failed') {
      addresses[family] = before[family]
      retained += before[family].length
      failed ??= each.why
    } else {
      none ??= each.why
    }
  }
  return { addresses, ttlMs, found, retained, failed, none }
}
