import type { UpstreamUrl } from '../upstream-url.ts'

/** Where a check goes. */
export interface CheckTarget {
  /** What it connects to: `http://host:port`. */
  readonly origin: string
  /** The Host that it asks for. */
  readonly host: string
  /** The port that exchanges use, too: who refuses a connection here serves nobody. */
  readonly own: boolean
}

/**
 * Where the check of an upstream goes. A unix socket has no ports: it is checked itself.
 * @param host the Host that exchanges ask the upstream for
 * @param port the port to check, null for the upstream's own
 */
export function checkTarget (url: Pick<UpstreamUrl, 'origin' | 'socketPath'>, host: string, port: number | null): CheckTarget {
  const { origin, socketPath } = url
  const moved = port === null || socketPath !== null ? origin : atPort(origin, port)
  if (moved === origin) return { origin, host, own: true }
  const scheme = origin.slice(0, origin.indexOf('//') + 2)
  return { origin: moved, host: atPort(scheme + host, port as number).slice(scheme.length), own: false }
}

/** The same origin with another port; one that is the scheme's default is left out, as everywhere. */
function atPort (origin: string, port: number): string {
  const url = new URL(origin)
  url.port = String(port)
  return url.origin
}
