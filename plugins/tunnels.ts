/** Connections that carry no requests any more, and who ends them when the app stops. */
import type { Socket } from 'node:net'

/** A connection that was handed over to another protocol. */
export interface OpenTunnel {
  /** Says goodbye to both sides, where their protocol lets us, and ends. Done once; a further call does nothing. */
  goAway (): void
  /** Ends at once. */
  cut (): void
}

const kTunnel = Symbol('breakwater.tunnel')
interface TaggedSocket extends Socket { [kTunnel]?: OpenTunnel }

/** The tunnel that a client's connection has become, or null. */
export function tunnelOn (socket: Socket): OpenTunnel | null {
  return (socket as TaggedSocket)[kTunnel] ?? null
}

export function setTunnel (socket: Socket, tunnel: OpenTunnel): void {
  ;(socket as TaggedSocket)[kTunnel] = tunnel
}
