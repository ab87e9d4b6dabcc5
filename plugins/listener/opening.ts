/** What happens on a connection before its first request: whose it is, and which protocol it speaks. */
import type { Socket } from 'node:net'
import { beginsAsHttp } from '../../lib/http/plain-http.ts'
import { parsePreface } from '../../lib/http/preface.ts'
import { parseProxyHeader, type ProxyHeader } from '../../lib/http/proxy-protocol.ts'

/**
 * Reads the beginning of a connection until `judge` knows: all that has come goes to it, each time more has come. What it does not
 * take is given back, to be read by whoever comes next; the socket is paused then.
 * @param judge how many bytes it takes; -1: more is needed
 */
function readBeginning (socket: Socket, judge: (bytes: Buffer) => number, done: () => void): void {
  let read: Buffer = Buffer.alloc(0)
  const stop = (): void => { socket.off('data', onData).off('end', onEnd) }
  function onData (chunk: Buffer): void {
    read = read.length === 0 ? chunk : Buffer.concat([read, chunk])
    const taken = judge(read)
    if (taken === -1) return
    stop()
    socket.pause()
    if (read.length > taken) socket.unshift(read.subarray(taken))
    done()
  }
  /** A client that leaves before it has said what it wants. */
  function onEnd (): void {
    stop()
    socket.destroy()
  }
  socket.on('data', onData).on('end', onEnd)
  // It was paused where another beginning was read before.
  socket.resume()
}

/** Reads the PROXY header; null: there is none. */
export function readProxyHeader (socket: Socket, done: (header: ProxyHeader | null) => void): void {
  let header: ProxyHeader | null = null
  readBeginning(socket, (bytes) => {
    const found = parseProxyHeader(bytes)
    if (found === 'more') return -1
    if (found === 'invalid') return 0
    header = found
    return found.length
  }, () => { done(header) })
}

/** Tells whether the client speaks HTTP/2. */
export function readPreface (socket: Socket, done: (isHttp2: boolean) => void): void {
  let isHttp2 = false
  readBeginning(socket, (bytes) => {
    const found = parsePreface(bytes)
    if (found === 'more') return -1
    isHttp2 = found
    return 0
  }, () => { done(isHttp2) })
}

/** Tells whether the client begins a request of HTTP where TLS was expected. */
export function readForTls (socket: Socket, done: (isHttp: boolean) => void): void {
  let isHttp = false
  readBeginning(socket, (bytes) => {
    const found = beginsAsHttp(bytes)
    if (found === 'more') return -1
    isHttp = found
    return 0
  }, () => { done(isHttp) })
}

/** Makes a socket tell the addresses that a load balancer has told, in the place of the load balancer's own. */
export function standIn (socket: Socket, { source, destination }: ProxyHeader): void {
  if (source === null || destination === null) return
  const tell = (name: string, value: unknown): void => { Object.defineProperty(socket, name, { value, configurable: true, enumerable: true }) }
  tell('remoteAddress', source.address)
  tell('remotePort', source.port)
  tell('remoteFamily', source.address.includes(':') ? 'IPv6' : 'IPv4')
  tell('localAddress', destination.address)
  tell('localPort', destination.port)
}
