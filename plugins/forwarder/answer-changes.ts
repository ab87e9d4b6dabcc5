import type { ResponseFields } from '../../lib/http/response-head.ts'
import { CompiledRoute } from '../../lib/route/compiled.ts'
import type { Answer } from './answer.ts'
import type { Attempt } from './attempt.ts'
import type { AnyRoute } from './route.ts'
import type { Terms } from './terms.ts'

/** What is done to the fields of an upstream's answer on its way to the client: what the route wants, and the pool's cookie. */
export class AnswerChanges {
  readonly #route: AnyRoute
  /** The client's cookie; null: it has none. */
  readonly #token: string | null

  private constructor (route: AnyRoute, token: string | null) {
    this.#route = route
    this.#token = token
  }

  /** Null where there is nothing to be done. */
  static of (route: AnyRoute, { lane }: Terms, token: string | null): AnswerChanges | null {
    return lane.pool.sticky === null && (!(route instanceof CompiledRoute) || route.changeResponse === null) ? null : new AnswerChanges(route, token)
  }

  change (fields: ResponseFields, { terms: { lane }, index, answer }: Attempt): void {
    if (this.#route instanceof CompiledRoute) this.#route.changeResponse?.(fields)
    const { sticky } = lane.pool
    // Nobody is kept at an upstream for the sake of a failure.
    if (sticky === null || (answer as Answer).failed) return
    if (this.#token === null || sticky.indexOf(this.#token) !== index) addCookie(fields, sticky.cookieFor(index))
  }
}

function addCookie (fields: ResponseFields, cookie: string): void {
  const theirs = fields['set-cookie']
  fields['set-cookie'] = theirs === undefined ? [cookie] : [theirs, cookie].flat()
}
