import type { Command } from '../children.ts'

/** What a peer is told before it starts. */
export interface Site {
  /** Where it must listen, on 127.0.0.1. */
  port: number
  /** The upstream's ports on 127.0.0.1: its list of servers. */
  upstreams: readonly number[]
  /** An empty folder of its own. */
  folder: string
  /** Aborted when the run stops: ends a build. */
  signal: AbortSignal
}

/** One proxy of the comparison. */
export interface Peer {
  name: string
  /** What is switched on in it, for the table's legend. */
  features: string
  /** How many ports of the upstream it spreads its requests over, where that is its own matter; else what the run says. */
  upstreams?: number
  /** It runs only where --only names it. */
  asked?: boolean
  /** Why it cannot run here; null: it can. */
  missing: () => string | null
  /** Its version, as its own program tells it. */
  version: () => string
  /** Writes its configuration, builds it if need be, and says how to start it. It must stay in the foreground. */
  prepare: (site: Site) => Command | Promise<Command>
}

/** The upstream's list as URLs. */
export const urls = (ports: readonly number[]): string[] => ports.map(port => `http://127.0.0.1:${port}`)
