import type { ServerResponse } from 'node:http'
import type { Exchange } from '../../lib/exchange.ts'
import { setTunnel, type OpenTunnel } from '../tunnels.ts'
import type { Attempt } from './attempt.ts'
import { Tunnel } from './tunnel.ts'
import type { Handshake } from './upgrades.ts'

/** What an exchange that asked for a tunnel needs when it gets one. */
export interface TunnelDoor {
  readonly handshake: Handshake
  /** The tunnels of the app that are open. */
  readonly open: Set<OpenTunnel>
  /** 0: none. */
  readonly idleMs: number
}

/**
 * Begins the tunnel when the 101 has been sent. Where something else is sent in its place, or the client is gone before, the upstream's
 * connection is let go.
 */
export function openTunnel ({ handshake, open, idleMs }: TunnelDoor, response: ServerResponse, attempt: Attempt, exchange: Exchange): void {
  const { upgraded } = attempt
  let begun = false
  response.on('finish', () => {
    if (response.statusCode !== 101 || upgraded === null) return attempt.tunnelEnded()
    begun = true
    const { socket } = handshake
    const tunnel = new Tunnel(socket, upgraded, exchange, idleMs, (ended) => {
      open.delete(ended)
      attempt.tunnelEnded()
    })
    open.add(tunnel)
    setTunnel(socket, tunnel)
    tunnel.start(handshake.take())
  })
  response.on('close', () => { if (!begun) attempt.tunnelEnded() })
}
