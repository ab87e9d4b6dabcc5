import { failureOf, type Reason } from './failure.ts'

/** The numbers behind a reason. Never anything of a header field, a query or a body. */
export type Evidence = Readonly<Record<string, string | number | readonly string[]>>

/** Who wants to know why an exchange is refused or fails, at that moment. */
export interface FailureWatch {
  exchangeFailed (exchange: Exchange, reason: Reason, evidence: Evidence | null): void
}

/**
 * The facts of one client request on its way through, written by whoever learns them and read by the access log and its like.
 * It decides nothing.
 */
export class Exchange {
  readonly requestId: string
  readonly clientIp: string
  /** Monotonic milliseconds at which the head had been read. */
  readonly receivedAt: number
  /** The configured path of the route that took it, or null. */
  route: string | null = null
  pool: string | null = null
  /** The upstream of the latest attempt. */
  upstream: string | null = null
  attempts = 0
  /** Why it was refused or failed; null while all is well. The first reason stays. */
  reason: Reason | null = null
  /**
   * Body bytes that the forwarder handed up, before onSend hooks of the app, which may make more or less of them, and before the
   * client took them; -1 where the answer is not the forwarder's.
   */
  bytes = -1
  /** Bytes that the client has sent through its tunnel; -1: there is none. */
  bytesIn = -1
  /** Of the distributed trace that it belongs to, 32 hexadecimal digits; null: it is not traced. */
  traceId: string | null = null
  /** Whole milliseconds after `receivedAt` at which the gate let it in; -1: it has not. */
  admittedMs = -1
  /** Its route or pool has limits of its own for receiving the request, in the place of the listener's. */
  ownRequestLimit = false
  /** null: nobody is told. */
  watch: FailureWatch | null = null
  /** What a recorder keeps here meanwhile: the latest attempt, and what there was to see when the exchange failed. */
  latest: object | null = null
  moment: object | null = null

  constructor (requestId: string, clientIp: string, receivedAt: number) {
    this.requestId = requestId
    this.clientIp = clientIp
    this.receivedAt = receivedAt
  }

  /** @param evidence the numbers behind it, for people */
  fail (reason: Reason, evidence: Evidence | null = null): void {
    if (this.reason !== null) return
    this.reason = reason
    this.watch?.exchangeFailed(this, reason, evidence)
  }
}

/**
 * What a failed exchange gives to whoever is at work on its answer already: an onSend hook that reads the body, and then the
 * error handler. Its message names no upstream.
 */
export class ExchangeError extends Error {
  readonly code = 'BREAKWATER_EXCHANGE_FAILED'
  readonly reason: Reason
  readonly statusCode: number

  constructor (reason: Reason) {
    super(failureOf(reason).title)
    this.name = 'ExchangeError'
    this.reason = reason
    this.statusCode = failureOf(reason).status
  }
}
