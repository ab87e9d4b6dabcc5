import type { IncomingMessage, ServerResponse } from 'node:http'

/** A proxy on this machine passes on what others sent: its fields give it away. */
export function isLocal ({ socket, headers }: IncomingMessage): boolean {
  const address = (socket.remoteAddress ?? '').replace(/^::ffff:/, '')
  const relayed = headers['via'] !== undefined || headers['forwarded'] !== undefined || headers['x-forwarded-for'] !== undefined
  return (address === '::1' || address.startsWith('127.')) && !relayed
}

/** Reads the body and counts its bytes; past `limit` the rest is read but not handed on. Rejects when the peer leaves before its end. */
export async function read (request: IncomingMessage, take?: (piece: Buffer) => void, limit = Infinity): Promise<number> {
  let bytes = 0
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length
    if (bytes <= limit) take?.(piece)
  }
  return bytes
}

/** Resolves after that time, or at once when the connection closes: nothing outlives its connection. */
export function pause ({ socket }: IncomingMessage, ms: number): Promise<void> {
  if (ms <= 0 || socket.destroyed) return Promise.resolve()
  return new Promise(resolve => {
    const done = () => {
      clearTimeout(timer)
      socket.off('close', done)
      resolve()
    }
    const timer = setTimeout(done, Math.min(ms, 2 ** 31 - 1))
    socket.once('close', done)
  })
}

/** Resolves when the response may be written to again, or when its connection closes. */
export function drained ({ socket }: IncomingMessage, response: ServerResponse): Promise<void> {
  return new Promise(resolve => {
    const done = () => {
      response.off('drain', done)
      socket.off('close', done)
      resolve()
    }
    response.once('drain', done)
    socket.once('close', done)
  })
}
