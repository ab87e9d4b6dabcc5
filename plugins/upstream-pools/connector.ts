import { isIP, isIPv6, type LookupFunction, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { buildConnector } from 'undici'
import { readRegularFile } from '../../config/regular-file.ts'
import type { PoolOptions } from '../../config/schema.ts'
import type { UpstreamUrl } from '../../lib/upstream-url.ts'
import { exactTimer } from '../exact-timer.ts'

/** The connection could not be made within its time limit. */
export class ConnectTimeoutError extends Error {
  readonly code = 'UND_ERR_CONNECT_TIMEOUT'
  /** Our own loop stood still meanwhile. */
  readonly stalled: boolean
  constructor (limitMs: number, stalled: boolean) {
    super(`no connection within ${limitMs} ms`)
    this.name = 'ConnectTimeoutError'
    this.stalled = stalled
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
  /** Tells an address that is known already. */
  lookup?: LookupFunction
}

/** The settings of TLS that all https upstreams of a pool share. Reads the files that the options name, and throws what `readRegularFile` throws. */
export function tlsSettings (tls: PoolOptions['tls']): ConnectSettings {
  // Told in any case, so that nothing but the configuration decides: Node's NODE_TLS_REJECT_UNAUTHORIZED does not.
  const settings: ConnectSettings = { rejectUnauthorized: tls?.insecureSkipVerify !== true }
  if (tls === undefined) return settings
  if (tls.ca !== undefined) settings.ca = readRegularFile(tls.ca).toString()
  if (tls.cert !== undefined) settings.cert = readRegularFile(tls.cert).toString()
  if (tls.key !== undefined) settings.key = readRegularFile(tls.key).toString()
  if (tls.servername !== undefined) settings.servername = tls.servername
  return settings
}

/** @param address where the URL's host is, if that is known already; the host stays the name that certificates are checked against */
export function connectSettings (url: UpstreamUrl, tls: ConnectSettings, address: string | null = null): ConnectSettings {
  return {
    ...url.socketPath !== null && { socketPath: url.socketPath },
    ...address !== null && { lookup: lookupOf(address) },
    ...url.secure && tls
  }
}

function lookupOf (address: string): LookupFunction {
  const family = isIPv6(address) ? 6 : 4
  return (_hostname, { all }, callback) => {
    if (all === true) callback(null, [{ address, family }])
    else callback(null, address, family)
  }
}

/** Makes connections, and knows those that are not made yet: undici forgets them when its client is destroyed. */
export interface Connector {
  /** undici's connector; it returns the socket that is being connected. */
  connect (options: buildConnector.Options, callback: buildConnector.Callback): Socket
  /** True while undici is told of the end of a connection that was in fact reset: a body that ends with it is cut. */
  readonly broken: boolean
  /** Gives up the connections that are still being made. */
  close (): void
}

/**
 * undici's connector with an exact time limit of our own: undici's timers are half a second coarse.
 * @param limitMs 0: none
 * @param connected called once for each connection made
 * @param spare a connection that is there already, to be used before another is made
 */
export function exactConnector (settings: ConnectSettings, limitMs: number, connected: () => void, spare: () => Socket | null = noSpare): Connector {
  const connect = buildConnector({ ...settings, timeout: 0 })
  const connecting = new Set<Socket>()
  let broken = false
  function begin (this: Socket): void { broken = wasReset(this) }
  function finish (): void { broken = false }
  function hand (socket: Socket, callback: buildConnector.Callback): void {
    // undici's own listeners are added in the callback: ours run before and after them.
    socket.on('error', recast).prependListener('end', begin)
    callback(null, socket)
    socket.on('end', finish)
  }
  return {
    get broken () { return broken },
    connect (options, callback) {
      const there = spare()
      if (there !== null) {
        process.nextTick(hand, there, callback)
        return there
      }
      return make(connect, connecting, options, nameIn(settings, options), limitMs, (error, socket) => {
        if (error !== null) return callback(error, null)
        connected()
        hand(socket, callback)
      })
    },
    close () {
      for (const socket of connecting) socket.destroy()
    }
  }
}

const noSpare = (): null => null

/** The name to ask for, and to check the certificate against; '' where the upstream has an address and no name. */
function nameIn ({ servername }: ConnectSettings, { hostname }: buildConnector.Options): string {
  return servername ?? (isIP(hostname.replace(/^\[(.*)\]$/, '$1')) === 0 ? hostname : '')
}

/** The same for connections on which HTTP/2 is spoken, or, over TLS, may be: the upstream picks (ALPN). */
export function http2Connector (settings: ConnectSettings, limitMs: number, connected: () => void): Omit<Connector, 'broken'> {
  const connect = buildConnector({ ...settings, timeout: 0, allowH2: true })
  const connecting = new Set<Socket>()
  return {
    connect (options, callback) {
      return make(connect, connecting, options, nameIn(settings, options), limitMs, (...result) => {
        if (result[0] === null) connected()
        callback(...result)
      })
    },
    close () {
      for (const socket of connecting) socket.destroy()
    }
  }
}

function make (connect: buildConnector.connector, connecting: Set<Socket>, options: buildConnector.Options, servername: string, limitMs: number, callback: buildConnector.Callback): Socket {
  let stop: (() => void) | null = null
  // undici makes a server name of the request's Host, which may be the client's.
  const socket = connect({ ...options, servername }, (...result) => {
    stop?.()
    connecting.delete(socket)
    callback(...result)
  }) as unknown as Socket
  connecting.add(socket)
  if (limitMs > 0) stop = exactTimer(limitMs, (stalled) => { socket.destroy(new ConnectTimeoutError(limitMs, stalled)) })
  return socket
}

/**
 * Makes undici take two errors for what any other error of a connection is to it: the end of its one request. The messages stay.
 * A reset it would take for the orderly end of a body that ends with its connection; its parser, paused then, would throw where
 * nobody can catch it; and on an idle connection the next request would get the blame. After an abort it would at once make a
 * new connection, for nobody.
 */
function recast (error: NodeJS.ErrnoException): void {
  if (error.code === 'ECONNRESET' || (error.code === 'UND_ERR_INFO' && error.message === 'aborted')) error.code = 'UND_ERR_SOCKET'
}

/**
 * Tells a reset from an orderly end where they look alike: libuv reports a reset that arrives with the last data as an end, but
 * the connection takes no more bytes then. An empty write sends nothing, and fails at once.
 */
function wasReset (socket: Socket): boolean {
  if (socket instanceof TLSSocket || !socket.writable || socket.writableLength > 0) return false
  socket.write('')
  return socket.errored !== null && socket.errored !== undefined
}
