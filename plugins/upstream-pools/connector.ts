import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { buildConnector } from 'undici'
import type { PoolOptions } from '../../config/schema.ts'
import type { UpstreamUrl } from '../../lib/upstream-url.ts'
import { exactTimer } from '../exact-timer.ts'

/** The connection could not be made within its time limit. */
export class ConnectTimeoutError extends Error {
  readonly code = 'UND_ERR_CONNECT_TIMEOUT'
  constructor (limitMs: number) {
    super(`no connection within ${limitMs} ms`)
    this.name = 'ConnectTimeoutError'
  }
}

/** What a connection to the upstream is made with: its socket and the pool's TLS settings. Certificates are verified unless told otherwise. */
export interface ConnectSettings {
  socketPath?: string
  ca?: string
  cert?: string
  key?: string
  servername?: string
  rejectUnauthorized?: boolean
}

/** Reads the files that the options name. Throws what `readFileSync` throws. */
export function connectSettings (url: UpstreamUrl, tls: PoolOptions['tls']): ConnectSettings {
  const settings: ConnectSettings = {}
  if (url.socketPath !== null) settings.socketPath = url.socketPath
  if (!url.secure || tls === undefined) return settings
  if (tls.ca !== undefined) settings.ca = readFileSync(tls.ca, 'utf8')
  if (tls.cert !== undefined) settings.cert = readFileSync(tls.cert, 'utf8')
  if (tls.key !== undefined) settings.key = readFileSync(tls.key, 'utf8')
  if (tls.servername !== undefined) settings.servername = tls.servername
  if (tls.insecureSkipVerify) settings.rejectUnauthorized = false
  return settings
}

/** Makes connections, and knows those that are not made yet: undici forgets them when its client is destroyed. */
export interface Connector {
  readonly connect: buildConnector.connector
  /** Gives up the connections that are still being made. */
  close (): void
}

/**
 * undici's connector with an exact time limit of our own: undici's timers are half a second coarse.
 * @param limitMs 0: none
 * @param connected called once for each connection made
 */
export function exactConnector (settings: ConnectSettings, limitMs: number, connected: () => void): Connector {
  const connect = buildConnector({ ...settings, timeout: 0 })
  const connecting = new Set<Socket>()
  return {
    connect (options, callback) {
      let stop: (() => void) | null = null
      const socket = connect(options, (...result) => {
        stop?.()
        connecting.delete(socket)
        if (result[0] === null) connected()
        callback(...result)
      }) as unknown as Socket
      connecting.add(socket)
      if (limitMs > 0) stop = exactTimer(limitMs, () => { socket.destroy(new ConnectTimeoutError(limitMs)) })
    },
    close () {
      for (const socket of connecting) socket.destroy()
    }
  }
}
