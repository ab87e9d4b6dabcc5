import type { FastifyBaseLogger } from 'fastify'
import { Repeats } from '../repeats.ts'
import type { OpeningFailure } from './front.ts'

export type ConnectionFailure = OpeningFailure | 'connection_limit'

/** What happens all day long wherever strangers can connect. */
const ordinary: ReadonlySet<ConnectionFailure> = new Set(['tls_handshake', 'opening_timeout'])

/** Tells of connections that failed before a request could come: the first of each kind at once, then how many there were. */
export class FailureLog {
  readonly #repeats: Repeats<ConnectionFailure, { client_ip: string, error: string | null }>

  constructor (log: FastifyBaseLogger) {
    this.#repeats = new Repeats((failure, count, first) => {
      log[ordinary.has(failure) ? 'info' : 'warn']({ failure, ...first ?? { client_ip: null, error: null }, count }, 'connection_failed')
    })
  }

  add (failure: ConnectionFailure, address: string, error: Error | null): void {
    this.#repeats.add(failure, { client_ip: address, error: error === null ? null : (error as NodeJS.ErrnoException).code ?? error.message })
  }

  close (): void { this.#repeats.close() }
}
