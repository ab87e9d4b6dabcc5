/**
 * A call that the breaker refused. The message names no upstream, because Fastify would show it to the client; the fields do.
 */
export class BreakerOpenError extends Error {
  override readonly name = 'BreakerOpenError'
  readonly code = 'BREAKER_OPEN'
  readonly statusCode = 503
  readonly pool: string
  readonly upstream: string
  /** When it may admit again, in ms from now. */
  readonly retryAfterMs: number

  constructor (pool: string, upstream: string, retryAfterMs: number) {
    super('The circuit of this service is open: nothing is sent to it for now')
    this.pool = pool
    this.upstream = upstream
    this.retryAfterMs = retryAfterMs
  }
}
