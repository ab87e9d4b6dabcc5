import type { Reason } from './failure.ts'

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
  /** Body bytes handed to the client's connection by the forwarder; -1 where the forwarder sent nothing. */
  bytes = -1

  constructor (requestId: string, clientIp: string, receivedAt: number) {
    this.requestId = requestId
    this.clientIp = clientIp
    this.receivedAt = receivedAt
  }

  fail (reason: Reason): void {
    this.reason ??= reason
  }
}
