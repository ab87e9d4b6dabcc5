import { IncomingMessage } from 'node:http'
import { isWebSocketHandshake } from '../lib/http/upgrade.ts'

const kAsked = Symbol('breakwater.upgradeAsked')
const kLast = Symbol('breakwater.lastOnItsConnection')

interface ParsedSocket { parser?: { getCurrentBuffer?: () => Buffer } | null }

/**
 * The `IncomingMessage` of a server that carries WebSockets: `upgrade`, by which Node decides whether a request is handed over with its
 * connection, is true only for what can be one. Every other request that asks for an upgrade (h2c, say) stays a request like any, with
 * its body.
 */
export class UpgradingMessage extends IncomingMessage {
  declare [kAsked]: boolean | null
  declare [kLast]: boolean | undefined

  /** What Node's parser found. */
  set upgrade (asked: boolean | null) { this[kAsked] = asked }

  get upgrade (): boolean | null {
    if (this[kAsked] !== true) return this[kAsked]
    if (this.method === 'CONNECT' || isWebSocketHandshake(this)) return true
    this[kLast] ??= !endsItsChunk(this.socket as ParsedSocket)
    return false
  }
}

/**
 * True for a request that asked for an upgrade, got none, and was not surely the last of what had arrived: Node's parser stops behind
 * such a request and drops the rest of what it had in hand, so that its connection must close behind the answer.
 */
export function mayHaveLostFollowers (raw: IncomingMessage): boolean {
  return (raw as UpgradingMessage)[kLast] === true
}

/** Whether the parser has in hand one head and nothing behind it. Whatever is less simple than that does not count. */
function endsItsChunk ({ parser }: ParsedSocket): boolean {
  const chunk = parser?.getCurrentBuffer?.()
  return chunk !== undefined && chunk.length >= 4 && chunk.indexOf('\r\n\r\n') === chunk.length - 4
}
