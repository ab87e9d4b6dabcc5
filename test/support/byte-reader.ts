import type { Socket } from 'node:net'

/** How the peer's half of a connection ended; `timeout` when we gave up waiting, `closed` when we destroyed it ourselves. */
export type End = 'fin' | 'reset' | 'timeout' | 'closed'

/** Thrown when the bytes that a reader waits for cannot come any more. */
export class ConnectionEnded extends Error {
  readonly how: End

  constructor (how: End, what: string) {
    super(`the connection ended (${how}) while waiting for ${what}`)
    this.name = 'ConnectionEnded'
    this.how = how
  }
}

/** The socket is paused while this much lies unread, so that a test that does not read makes the peer feel it. */
const highWaterBytes = 65536

/**
 * Reads a socket by the byte: to a delimiter, a count, or the end. Everything received stays in `received`. While more than
 * 64 KiB lie unread the socket is paused; a FIN or reset behind them is then not seen until they are read.
 */
export class ByteReader {
  /** How the peer's half ended, once it has; resolves only when the end has been seen. */
  readonly ended: Promise<End>
  readonly #socket: Socket
  readonly #received: Buffer[] = []
  #buffered: Buffer = Buffer.alloc(0)
  #queue: Buffer[] = []
  #queuedBytes = 0
  #end: End | undefined
  #settleEnd: (end: End) => void = () => {}
  #wake: (() => void) | undefined

  /**
   * @param probe tell a reset from a FIN where they look alike: a reset that arrives together with the last data is reported
   * as an ordinary end by libuv, but a write then fails. Needs `allowHalfOpen`, and our half must still be open; an empty
   * write sends nothing.
   */
  constructor (socket: Socket, probe = false) {
    this.#socket = socket
    this.ended = new Promise(resolve => { this.#settleEnd = resolve })
    socket.on('data', (bytes: Buffer) => {
      this.#received.push(bytes)
      this.#queue.push(bytes)
      this.#queuedBytes += bytes.length
      if (this.#queuedBytes + this.#buffered.length > highWaterBytes) socket.pause()
      this.#wake?.()
    })
    socket.on('end', () => {
      if (!probe || !socket.writable) this.finish('fin')
      // With writes pending the probe would wait behind them; but then they fail by themselves, and at once.
      else if (socket.writableLength > 0) setImmediate(() => setImmediate(() => this.finish('fin')))
      else socket.write(Buffer.alloc(0), error => this.finish(error == null ? 'fin' : 'reset'))
    })
    socket.on('error', () => this.finish('reset'))
    socket.on('close', () => this.finish('closed'))
  }

  /** Every byte that has arrived so far. */
  get received (): Buffer {
    return Buffer.concat(this.#received)
  }

  /** Undefined while the peer may still send. */
  get end (): End | undefined {
    return this.#end
  }

  /** Ends the reading for `how`; the first call decides. */
  finish (how: End): void {
    if (this.#end !== undefined) return
    this.#end = how
    this.#settleEnd(how)
    this.#wake?.()
  }

  /**
   * Everything up to and including the delimiter.
   * @throws ConnectionEnded when it does not come, or a RangeError past `limit` bytes
   */
  async until (delimiter: string, limit = 1 << 20): Promise<Buffer> {
    for (let from = 0; ;) {
      const bytes = this.#gather()
      const at = bytes.indexOf(delimiter, from, 'latin1')
      if (at >= 0) return this.#take(at + delimiter.length)
      if (bytes.length > limit) throw new RangeError(`no ${JSON.stringify(delimiter)} within ${limit} bytes`)
      from = Math.max(0, bytes.length - delimiter.length)
      await this.#more(JSON.stringify(delimiter))
    }
  }

  /** At least one byte and at most `max`, as soon as there are any; an empty buffer at the end of the connection. */
  async some (max = Infinity): Promise<Buffer> {
    while (this.#gather().length === 0) {
      if (this.#end !== undefined) return Buffer.alloc(0)
      await this.#event()
    }
    return this.#take(Math.min(max, this.#buffered.length))
  }

  /** Exactly `count` bytes. @throws ConnectionEnded when fewer come */
  async exactly (count: number): Promise<Buffer> {
    const pieces: Buffer[] = []
    for (let missing = count; missing > 0;) {
      const piece = await this.some(missing)
      if (piece.length === 0) throw new ConnectionEnded(this.#end ?? 'closed', `${missing} more of ${count} bytes`)
      pieces.push(piece)
      missing -= piece.length
    }
    return Buffer.concat(pieces)
  }

  /** Whether a byte comes before the end. */
  async hasMore (): Promise<boolean> {
    while (this.#gather().length === 0) {
      if (this.#end !== undefined) return false
      await this.#event()
    }
    return true
  }

  async #more (what: string): Promise<void> {
    const before = this.#buffered.length
    while (this.#gather().length === before) {
      if (this.#end !== undefined) throw new ConnectionEnded(this.#end, `${what} (${before} bytes have come)`)
      await this.#event()
    }
  }

  #gather (): Buffer {
    if (this.#queue.length > 0) {
      this.#buffered = this.#buffered.length === 0 && this.#queue.length === 1 ? this.#queue[0] as Buffer : Buffer.concat([this.#buffered, ...this.#queue])
      this.#queue = []
      this.#queuedBytes = 0
    }
    return this.#buffered
  }

  #take (count: number): Buffer {
    const taken = this.#buffered.subarray(0, count)
    this.#buffered = this.#buffered.subarray(count)
    return taken
  }

  async #event (): Promise<void> {
    this.#socket.resume()
    await new Promise<void>(resolve => { this.#wake = resolve })
    this.#wake = undefined
  }
}
