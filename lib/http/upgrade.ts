/** What of a request tells whether it is a WebSocket handshake. */
export interface UpgradeRequest {
  method?: string | undefined
  httpVersion: string
  /** By lower-case name; several lines of one name joined by commas. */
  headers: Readonly<Record<string, string | string[] | undefined>>
}

/** The one protocol that a connection is handed over to. */
export const tunnelledProtocol = 'websocket'

/**
 * True for the one upgrade that is carried: `GET`, HTTP/1.1, `Upgrade: websocket` and nothing beside it, and no body. That the
 * Connection field names the upgrade is the parser's to tell.
 */
export function isWebSocketHandshake ({ method, httpVersion, headers }: UpgradeRequest): boolean {
  const { upgrade } = headers
  return method === 'GET' && httpVersion === '1.1' && typeof upgrade === 'string' && upgrade.trim().toLowerCase() === tunnelledProtocol && !announcesBody(headers)
}

/** True for a request whose head says that a body follows. */
export function announcesBody (headers: UpgradeRequest['headers']): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
}

/**
 * True for an answer of 101 that switches to the protocol that was asked for, and to no other.
 * @param rawFields name, value, name, value, ... as the parser read them
 * @param nameOf decodes a name to lower case
 */
export function switchesToWebSocket (rawFields: readonly Buffer[], nameOf: (name: Buffer) => string): boolean {
  let found = false
  for (let i = 0; i + 1 < rawFields.length; i += 2) {
    if (nameOf(rawFields[i] as Buffer) !== 'upgrade') continue
    if (found || (rawFields[i + 1] as Buffer).toString('latin1').trim().toLowerCase() !== tunnelledProtocol) return false
    found = true
  }
  return found
}
