import { connect, type Socket } from 'node:net'
import type { Random } from '../../lib/random.ts'
import { oneOf } from './mutate.ts'

/** What a client does when it has sent all: reads until the server closes, ends its half, leaves, or breaks the connection. */
export type Ending = 'read' | 'fin' | 'leave' | 'reset'

export const drawEnding = (random: Random): Ending => oneOf(random, ['read', 'read', 'read', 'fin', 'leave', 'reset'] as const)

export interface Conversation {
  got: Buffer
  /** The bytes that were written before the connection was gone. */
  sent: Buffer
}

/** How long a server may leave a connection open that has nothing more to say, in ms. Its own limits are far shorter. */
const hangMs = 15_000

/** Talks over one connection. @throws where there is no connection, and where the server does not close it in time, though nothing more will come */
export async function converse (port: number, parts: readonly Buffer[], ending: Ending, idleMs: number | null = null): Promise<Conversation> {
  const got: Buffer[] = []
  const sent: Buffer[] = []
  const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
  const closed = new Promise<void>((resolve) => { socket.once('close', () => { resolve() }) })
  let failed: Error | null = null
  socket.on('error', (error) => { failed = error })
  socket.on('data', (bytes: Buffer) => { got.push(bytes) })
  socket.on('end', () => { socket.end() })
  await new Promise<void>((resolve) => { socket.once('connect', resolve).once('close', () => { resolve() }) })
  // Nothing was sent then, and silence would look like the server's.
  if (socket.destroyed) throw new Error('no connection', { cause: failed })
  for (const [index, part] of parts.entries()) {
    if (index > 0) await new Promise((resolve) => { setTimeout(resolve, 1) })
    if (socket.destroyed || socket.writableEnded) break
    sent.push(part)
    await new Promise<void>((resolve) => { socket.write(part, () => { resolve() }) })
  }
  if (ending === 'fin') socket.end()
  else if (ending === 'leave') socket.destroy()
  else if (ending === 'reset' && !socket.destroyed) socket.resetAndDestroy()
  // A protocol that keeps its connections: silence is as good as an end.
  if (idleMs !== null) socket.setTimeout(idleMs, () => { socket.destroy() })
  let hung = false
  const timer = setTimeout(() => { hung = true; socket.destroy() }, hangMs)
  await closed
  clearTimeout(timer)
  if (hung) throw new Error(`the connection was still open after ${hangMs} ms; got ${JSON.stringify(Buffer.concat(got).toString('latin1').slice(-300))}`)
  return { got: Buffer.concat(got), sent: Buffer.concat(sent) }
}
