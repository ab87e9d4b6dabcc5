import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Exchange } from '../../lib/exchange.ts'
import type { Reason } from '../../lib/failure.ts'
import { closeFrame, FrameWalk, goingAway } from '../../lib/http/websocket-frames.ts'
import { closeGently } from '../connection.ts'
import { afterReading, stallMs } from '../exact-timer.ts'
import type { OpenTunnel } from '../tunnels.ts'

/** How long a side that was told goodbye, or whose other side broke, may take to end, in ms. */
const partingMs = 1000

/** A tunnel of which one side has ended, and in which nothing passes, is ended after this time, in ms. */
const halfClosedIdleMs = 30000

/** After so many ms without a byte the system asks the client's host whether it is still there. */
const keepAliveMs = 60000

const kFlow = Symbol('breakwater.flow')
interface FlowingSocket extends Socket { [kFlow]?: Flow }

/** One direction of a tunnel: what `source` sends goes to `sink`, no faster than it takes it. */
class Flow {
  readonly source: FlowingSocket
  readonly sink: FlowingSocket
  readonly tunnel: Tunnel
  readonly #toClient: boolean
  readonly #walk = new FrameWalk()
  /** Nothing more is passed on: the source has ended, the last frame has passed, or the sink is gone. */
  over = false
  /** The frame that is under way is the last one. */
  #leaving = false

  constructor (tunnel: Tunnel, source: Socket, sink: Socket, toClient: boolean) {
    this.tunnel = tunnel
    this.source = source
    this.sink = sink
    this.#toClient = toClient
  }

  begin (): void {
    const { source } = this
    source[kFlow] = this
    source.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose).on('drain', onDrain)
    source.resume()
  }

  /** False when the source has to wait. */
  pass (chunk: Buffer): boolean {
    if (this.over) return true
    this.tunnel.passed()
    const passed = this.#walk.pass(chunk, this.#leaving)
    this.tunnel.count(this.#toClient, passed)
    const more = this.sink.write(passed === chunk.length ? chunk : chunk.subarray(0, passed))
    if (!this.#leaving || !this.#walk.between) return more
    this.over = true
    this.tunnel.flowOver()
    return true
  }

  /** A close frame has passed. */
  get closing (): boolean { return this.#walk.closing }

  /** The source has sent its last byte. */
  end (): void {
    if (this.over) return
    this.over = true
    this.tunnel.broke(this.source)
    this.sink.end()
    this.tunnel.halfClosed()
    this.tunnel.flowOver()
  }

  /** Nothing is passed on behind the frame that is under way. */
  leave (): void {
    this.#leaving = true
    if (this.#walk.between) this.over = true
  }

  /** A close frame for the sink, and no more. */
  sayGoodbye (): void {
    const { sink } = this
    if (!sink.writable) return
    sink.write(closeFrame(goingAway, this.#toClient ? null : randomBytes(4)))
    sink.end(() => { closeGently(sink, partingMs) })
    // What comes is read, and goes nowhere.
    this.source.resume()
  }
}

/**
 * A WebSocket on its way through: bytes in both directions, with backpressure and half-closes, until both sides have ended. Who it
 * belongs to is told once, when they have.
 */
export class Tunnel implements OpenTunnel {
  readonly #client: Socket
  readonly #upstream: Socket
  readonly #exchange: Exchange
  readonly #idleMs: number
  readonly #ended: (tunnel: Tunnel) => void
  readonly #toClient: Flow
  readonly #toUpstream: Flow
  #limitMs: number
  #lastAt = 0
  #timer: NodeJS.Timeout | null = null
  #open = 2
  #leaving = false
  #parted = false

  /**
   * @param idleMs the time in which nothing passes after which it is ended; 0: none
   * @param ended both sides are closed
   */
  constructor (client: Socket, upstream: Socket, exchange: Exchange, idleMs: number, ended: (tunnel: Tunnel) => void) {
    this.#client = client
    this.#upstream = upstream
    this.#exchange = exchange
    this.#idleMs = this.#limitMs = idleMs
    this.#ended = ended
    this.#toClient = new Flow(this, upstream, client, true)
    this.#toUpstream = new Flow(this, client, upstream, false)
  }

  /** @param early what the client has sent already */
  start (early: readonly Buffer[]): void {
    const client = this.#client
    const upstream = this.#upstream
    this.#exchange.bytes = this.#exchange.bytesIn = 0
    client.setKeepAlive(true, keepAliveMs)
    this.passed()
    this.#watch()
    this.#toClient.begin()
    this.#toUpstream.begin()
    let more = true
    for (const chunk of early) more = this.#toUpstream.pass(chunk)
    if (!more) client.pause()
    // One of them may have ended before anybody listened.
    for (const socket of [client, upstream]) {
      if (socket.closed) this.closed(socket)
      else if (socket.readableEnded) (socket as FlowingSocket)[kFlow]?.end()
    }
  }

  // ---- what the two directions tell

  count (toClient: boolean, bytes: number): void {
    if (toClient) this.#exchange.bytes += bytes
    else this.#exchange.bytesIn += bytes
  }

  passed (): void { this.#lastAt = performance.now() }

  halfClosed (): void {
    this.#limitMs = this.#idleMs === 0 ? halfClosedIdleMs : Math.min(this.#idleMs, halfClosedIdleMs)
    this.passed()
    this.#watch()
  }

  /** One side has ended: without a close frame before, of whichever side, that was no orderly end. */
  broke (socket: Socket): void {
    if (!this.#leaving && !this.#toClient.closing && !this.#toUpstream.closing) this.#exchange.fail(socket === this.#client ? 'client_cancelled' : 'body_truncated')
  }

  /** A side takes more: the other one may send again. */
  drained (socket: Socket): void {
    this.#otherOf(socket).resume()
  }

  #otherOf (socket: Socket): Socket {
    return socket === this.#client ? this.#upstream : this.#client
  }

  closed (socket: FlowingSocket): void {
    this.#open--
    if (this.#open === 0) {
      this.#stopWatching()
      this.#ended(this)
      return
    }
    // What it has sent is still delivered, and then the other side is closed, too: nobody is there for it any more.
    for (const flow of [this.#toClient, this.#toUpstream]) flow.over = true
    const other = this.#otherOf(socket)
    other.resume()
    closeGently(other, partingMs)
  }

  // ---- ending it from our side

  goAway (): void { this.#leave('draining') }

  cut (): void {
    this.#exchange.fail('draining')
    this.#client.destroy()
    this.#upstream.destroy()
  }

  #leave (reason: Reason): void {
    if (this.#leaving) return
    this.#leaving = true
    this.#exchange.fail(reason, reason === 'tunnel_idle_timeout' ? { idleMs: this.#limitMs } : null)
    this.#toClient.leave()
    this.#toUpstream.leave()
    this.flowOver()
  }

  /** A side that is told goodbye may end without finishing its own frame: so both are told when both directions are through. */
  flowOver (): void {
    if (!this.#leaving || this.#parted || !this.#toClient.over || !this.#toUpstream.over) return
    this.#parted = true
    this.#toClient.sayGoodbye()
    this.#toUpstream.sayGoodbye()
  }

  // ---- the idle limit

  #watch (): void {
    this.#stopWatching()
    if (this.#limitMs > 0) this.#timer = setTimeout(onTimer, Math.max(1, this.#lastAt + this.#limitMs - performance.now()), this)
  }

  #stopWatching (): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }

  timerFired (): void {
    const late = performance.now() - this.#lastAt - this.#limitMs
    // Our own loop may have stood still: what has arrived is read before it is called idle.
    if (late < stallMs) this.#judge()
    else afterReading(() => { this.#judge() })
  }

  #judge (): void {
    if (this.#open === 0) return
    if (performance.now() - this.#lastAt < this.#limitMs - 0.5) return this.#watch()
    if (this.#limitMs === this.#idleMs) this.#leave('tunnel_idle_timeout')
    // Nothing can be said in the middle of a frame, and nobody may be listening.
    this.#timer = setTimeout(onPartingOver, partingMs, this)
  }

  partingOver (): void {
    this.#client.destroy()
    this.#upstream.destroy()
  }
}

function onData (this: FlowingSocket, chunk: Buffer): void {
  if (this[kFlow]?.pass(chunk) === false) this.pause()
}

function onDrain (this: FlowingSocket): void { this[kFlow]?.tunnel.drained(this) }
function onEnd (this: FlowingSocket): void { this[kFlow]?.end() }
function onError (this: FlowingSocket): void { this[kFlow]?.tunnel.broke(this) }
function onClose (this: FlowingSocket): void { this[kFlow]?.tunnel.closed(this) }
function onTimer (tunnel: Tunnel): void { tunnel.timerFired() }
function onPartingOver (tunnel: Tunnel): void { tunnel.partingOver() }
