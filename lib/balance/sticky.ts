import { createHmac } from 'node:crypto'
import type { StickyOptions } from '../../config/schema.ts'

/** Bytes of a token: 144 bits are more than anybody can guess, and need no padding. */
const tokenBytes = 18

/**
 * The value of the cookie that keeps a client at an upstream: 24 characters of base64url. The same secret gives the same value on
 * every instance; without it nobody can tell which upstream is meant, or make a value up.
 */
export function stickyToken (secret: string, pool: string, upstreamId: string): string {
  return createHmac('sha256', secret).update(`${pool}\0${upstreamId}`).digest().toString('base64url', 0, tokenBytes)
}

/** The tokens of a pool's members, made once: no value of a client is ever remembered. */
export class StickyTable {
  readonly #indexes = new Map<string, number>()
  readonly #cookies: readonly string[]

  /** @param upstreamIds the members in the order of their indexes */
  constructor (options: StickyOptions, pool: string, upstreamIds: readonly string[]) {
    const attributes = attributesOf(options)
    this.#cookies = upstreamIds.map((id, index) => {
      const token = stickyToken(options.secret, pool, id)
      this.#indexes.set(token, index)
      return `${options.cookie}=${token}${attributes}`
    })
  }

  /** The member that a client's cookie names; -1: none of this pool. */
  indexOf (token: string): number {
    return this.#indexes.get(token) ?? -1
  }

  /** The value of a Set-Cookie field that keeps a client at this member. @param index one of the members */
  cookieFor (index: number): string {
    return this.#cookies[index]!
  }
}

const sameSites = { lax: 'Lax', strict: 'Strict', none: 'None' } as const

function attributesOf ({ path, maxAgeSeconds, secure, sameSite }: StickyOptions): string {
  return `; Path=${path}${maxAgeSeconds === 0 ? '' : `; Max-Age=${maxAgeSeconds}`}; HttpOnly; SameSite=${sameSites[sameSite]}${secure ? '; Secure' : ''}`
}
