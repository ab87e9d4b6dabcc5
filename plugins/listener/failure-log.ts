import type { FastifyBaseLogger } from 'fastify'
import type { OpeningFailure } from './front.ts'

/** For each kind at most one line in so many ms: whoever can connect could fill the log otherwise. */
const everyMs = 10_000

export type ConnectionFailure = OpeningFailure | 'connection_limit'

/** What happens all day long wherever strangers can connect. */
const ordinary: ReadonlySet<ConnectionFailure> = new Set(['tls_handshake', 'opening_timeout'])

/** Tells of connections that failed before a request could come: the first of each kind at once, then how many there were. */
export class FailureLog {
  readonly #log: FastifyBaseLogger
  /** How many of a kind have not been told, while their time runs. */
  readonly #untold = new Map<ConnectionFailure, number>()
  readonly #timers = new Set<NodeJS.Timeout>()

  constructor (log: FastifyBaseLogger) {
    this.#log = log
  }

  add (failure: ConnectionFailure, address: string, error: Error | null): void {
    const untold = this.#untold.get(failure)
    if (untold !== undefined) {
      this.#untold.set(failure, untold + 1)
      return
    }
    this.#tell(failure, { client_ip: address, error: error === null ? null : (error as NodeJS.ErrnoException).code ?? error.message, count: 1 })
  }

  #tell (failure: ConnectionFailure, fields: object): void {
    this.#log[ordinary.has(failure) ? 'info' : 'warn']({ failure, ...fields }, 'connection_failed')
    this.#untold.set(failure, 0)
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      const count = this.#untold.get(failure) ?? 0
      this.#untold.delete(failure)
      if (count > 0) this.#tell(failure, { client_ip: null, error: null, count })
    }, everyMs).unref()
    this.#timers.add(timer)
  }

  close (): void {
    for (const timer of this.#timers) clearTimeout(timer)
  }
}
