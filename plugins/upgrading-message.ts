import { IncomingMessage } from 'node:http'
import { isWebSocketHandshake } from '../lib/http/upgrade.ts'

const kAsked = Symbol('breakwater.upgradeAsked')

/**
 * The `IncomingMessage` of a server that carries WebSockets: `upgrade`, by which Node decides whether a request is handed over with its
 * connection, is true only for what can be one. Every other request that asks for an upgrade (h2c, say) stays a request like any, with
 * its body, and with those behind it on its connection.
 */
export class UpgradingMessage extends IncomingMessage {
  declare [kAsked]: boolean | null

  /** What Node's parser found. */
  set upgrade (asked: boolean | null) { this[kAsked] = asked }

  get upgrade (): boolean | null {
    return this[kAsked] === true ? this.method === 'CONNECT' || isWebSocketHandshake(this) : this[kAsked]
  }
}
