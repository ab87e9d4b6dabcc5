/** Clients of HTTP/2 that are stuck, each in a way of its own; none of them ever ends its side of a connection. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { send, stall, type RawHandler } from '../../support/faulty-upstream.ts'
import type { LogLine } from '../../support/collect.ts'
import { block, data, frame, frameClient, headers, requestFields, settings, uint32, type FrameClientOptions, type FrameConnection } from '../../support/http2-frames.ts'

/** Answers `/endless` with a body that has no end, `/small` at once, anything else never. */
export const endless: RawHandler = async (socket, { target }) => {
  if (target === '/small') return send(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello')
  if (target !== '/endless') return stall(socket)
  await send(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n')
  const piece = Buffer.alloc(65536)
  while (!socket.destroyed) {
    if (!socket.write(piece)) await new Promise<void>((resolve) => { socket.once('drain', resolve).once('close', resolve) })
  }
}

const get = (path: string): Buffer => headers(1, requestFields(path), true)
const wide = Buffer.concat([settings([4, 0x7fffffff]), frame('WINDOW_UPDATE', 0, 0, uint32(0x7fff0000 - 65535))])
const goAway = frame('GOAWAY', 0, 0, uint32(0, 0))

export interface Stuck {
  what: string
  bytes: Buffer
  /** It stops reading at once. */
  deaf?: boolean
  /** Status of its access line; null: none is written. */
  status: number | null
  /** Its request is still to be answered. */
  owed: boolean
  /** Node 20 lets such a connection stand for ever, later ones end it: then it is a client that has left. */
  mayHaveLeft?: boolean
}

export const stuck: readonly Stuck[] = [
  { what: 'never reads its answer', bytes: Buffer.concat([wide, get('/endless')]), deaf: true, status: 200, owed: true },
  { what: 'never reads, and has said GOAWAY', bytes: Buffer.concat([wide, get('/endless'), goAway]), deaf: true, status: 200, owed: true },
  { what: 'never sends its body', bytes: Buffer.concat([settings(), headers(1, requestFields('/hang', 'POST')), data(1, 'some')]), status: 503, owed: true },
  { what: 'gives no window for its answer', bytes: Buffer.concat([settings([4, 0]), get('/endless')]), status: 200, owed: true },
  { what: 'gives no window, and has said GOAWAY', bytes: Buffer.concat([settings([4, 0]), get('/endless'), goAway]), status: 200, owed: true },
  { what: 'was given up by nghttp2', bytes: Buffer.concat([settings(), get('/hang'), data(1, 'more', true)]), status: 503, owed: true, mayHaveLeft: true },
  { what: 'never ends its head', bytes: Buffer.concat([settings(), frame('HEADERS', 0, 1, block(requestFields()))]), status: null, owed: false },
  { what: 'has got its answer', bytes: Buffer.concat([settings(), get('/small')]), status: 200, owed: false },
  { what: 'asks for nothing', bytes: settings(), status: null, owed: false }
]

/**
 * Of all of them each with a request has its one line, and who was still owed an answer was cut.
 * @param open how many were cut, as the shutdown told
 */
export function assertCut (access: readonly LogLine[], open: number): void {
  const left = access.some(({ reason }) => reason === 'client_cancelled')
  const expected = stuck.filter(({ status }) => status !== null).map(({ status, owed, mayHaveLeft = false }) =>
    left && mayHaveLeft ? '499 client_cancelled' : `${String(status)} ${owed ? 'draining' : 'null'}`)
  const told = access.map(({ status, reason }) => `${String(status)} ${String(reason)}`)
  assert.deepEqual(told.toSorted(), expected.toSorted())
  assert.equal(open, told.filter((each) => each.endsWith('draining')).length)
}

export async function connectStuck (t: Pick<TestContext, 'after'>, port: number, { bytes, deaf = false }: Stuck, options: FrameClientOptions = {}): Promise<FrameConnection> {
  const client = await frameClient(t, port, bytes, { allowHalfOpen: true, ...options })
  if (deaf) client.socket.pause()
  return client
}
