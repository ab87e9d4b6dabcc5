import { connect, type ClientHttp2Session, type ClientHttp2Stream, type ClientSessionRequestOptions, type OutgoingHttpHeaders } from 'node:http2'
import type { Socket } from 'node:net'
import { exactTimer } from '../exact-timer.ts'
import { endLater } from './end-later.ts'
import { StreamClosedError } from './errors.ts'

export interface SessionOptions {
  origin: URL
  /** Exchanges at the same time that we put on it; the upstream may allow fewer. */
  maxStreams: number
  /** How long it is kept without any, in ms. */
  keepAliveMs: number
  /** Time in which the upstream must have shown that it speaks HTTP/2, in ms, and in which it must answer whether it is still there; 0: none. */
  answerMs: number
}

/** Who is told what becomes of a session. */
export interface SessionOwner {
  /** It takes so many exchanges: told with the first SETTINGS, and when later ones say something else. */
  limitIs (streams: number): void
  /** It can take exchanges, or more of them than before. */
  roomOn (session: Session): void
  /** It takes nothing more; those that are on it may still end well. */
  noMoreOn (session: Session): void
  goneSession (session: Session, error: Error): void
}

/** Bytes of an answer's body that may come before anybody takes them: on a stream, and on all streams of a connection. */
const streamWindow = 262144
const connectionWindow = 4194304
/** The head may have 64 KiB; what is a little larger is seen, and told, as an invalid answer. */
const maxHeaderListSize = 131072
const maxHeaderPairs = 4096
/** What the buffers of a session may take, in megabytes. */
const maxSessionMemory = 64
/** Silence is judged after this time where there is no time limit for connections, in ms. */
const defaultAnswerMs = 2000
/** Time for the upstream to read our GOAWAY and to end its side when a connection is over, in ms. */
const lingerMs = 1000

/**
 * One connection that speaks HTTP/2. It counts as made when the upstream's SETTINGS have come: they tell how many streams it takes,
 * and that it speaks HTTP/2 at all. Nothing is sent before, so that what fails until then is safe to repeat.
 */
export class Session {
  readonly #options: SessionOptions
  readonly #owner: SessionOwner
  readonly #h2: ClientHttp2Session
  readonly #socket: Socket
  #stopTimer: () => void = () => {}
  #idle: NodeJS.Timeout | null = null
  #linger: NodeJS.Timeout | null = null
  #ready = false
  #doubted = false
  /** Exchanges on it now. */
  open = 0
  /** So many it takes. */
  limit = 0
  /** Why it broke; null: it did not. */
  error: Error | null = null
  /** It takes no new exchanges. */
  goingAway = false
  isGone = false

  constructor (socket: Socket, options: SessionOptions, owner: SessionOwner) {
    const { origin, maxStreams, answerMs } = options
    this.#options = options
    this.#owner = owner
    this.#socket = socket
    this.#h2 = connect(origin, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: streamWindow, maxHeaderListSize },
      peerMaxConcurrentStreams: maxStreams,
      maxReservedRemoteStreams: 0,
      maxHeaderListPairs: maxHeaderPairs,
      maxSessionMemory
    })
    // Whoever makes it end, nothing more is sent on it.
    endLater(this.#h2, () => { this.#leave() })
    if (answerMs > 0) this.#within(answerMs, () => Object.assign(new Error(`no SETTINGS within ${answerMs} ms`), { code: 'UND_ERR_CONNECT_TIMEOUT' }))
    this.#h2.on('remoteSettings', ({ maxConcurrentStreams = Infinity }) => { this.#onSettings(Math.min(maxStreams, maxConcurrentStreams)) })
      .on('goaway', () => { this.#leave() })
      .on('error', (error: Error) => { this.error = error })
      .on('close', () => { this.#onClose() })
    // 'close' waits for the streams; from the end of the connection on there is nothing to send on.
    socket.on('close', () => { this.#leave() })
  }

  get hasRoom (): boolean { return this.#ready && !this.goingAway && !this.#doubted && this.open < this.limit && !this.#h2.closed && !this.#h2.destroyed }

  request (fields: OutgoingHttpHeaders, options: ClientSessionRequestOptions): ClientHttp2Stream {
    this.#stopIdle()
    try {
      return this.#h2.request(fields, options)
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException
      if (!unusable.has(code)) throw Object.assign(error as Error, { code: 'BREAKWATER_H2_FIELDS' })
      this.#leave()
      throw new StreamClosedError('the connection takes no more requests', { unprocessed: true, goingAway: true })
    }
  }

  /** An exchange has left it. */
  released (): void {
    this.open--
    if (this.open === 0) this.#emptied()
    if (this.hasRoom) this.#owner.roomOn(this)
  }

  /**
   * An exchange was given up that waited for an answer: the upstream may be gone, without a word. It is asked; until it says that it
   * is still there nobody else is sent its way, and where it does not, the connection ends. One that takes nothing more is left to those
   * that are on it: nobody else goes there, and Node asks nothing behind a GOAWAY.
   */
  doubt (): void {
    if (this.#doubted || this.goingAway || this.#h2.closed || this.#h2.destroyed) return
    this.#doubted = true
    const ms = this.#options.answerMs || defaultAnswerMs
    this.#within(ms, () => new StreamClosedError(`the upstream is silent: no answer to a ping within ${ms} ms`))
    const asked = this.#h2.ping((error) => {
      this.#stopTimer()
      this.#doubted = false
      if (error === null && this.hasRoom) this.#owner.roomOn(this)
    })
    if (!asked) this.#cut(new StreamClosedError('the upstream could not be asked'))
  }

  /** No new exchanges; it closes when the last one has ended. */
  close (): void {
    this.#leave()
    if (!this.#ready) this.#cut()
    else if (!this.#h2.closed) this.#h2.close()
  }

  destroy (): void { this.#cut() }

  /** Node alone waits until the upstream has read what is being written, and has ended its side. */
  #cut (error?: Error): void {
    this.error ??= error ?? null
    this.#leave()
    this.#h2.destroy(error)
    setImmediate(() => { this.#socket.destroy() })
  }

  /** What is waited for must have come within the time; where our own loop stood still, it has the time once more. */
  #within (ms: number, error: () => Error): void {
    this.#stopTimer = exactTimer(ms, (stalled) => {
      if (stalled) this.#within(ms, error)
      else this.#cut(error())
    })
  }

  #onSettings (limit: number): void {
    const isNews = !this.#ready || limit !== this.limit
    this.limit = limit
    if (!this.#ready) {
      this.#ready = true
      this.#stopTimer()
      this.#h2.setLocalWindowSize(connectionWindow)
      if (this.open === 0) this.#startIdle()
    }
    if (isNews) this.#owner.limitIs(limit)
    this.#owner.roomOn(this)
  }

  #leave (): void {
    if (this.goingAway) return
    this.goingAway = true
    this.#owner.noMoreOn(this)
    if (this.open === 0) this.#emptied()
  }

  #emptied (): void {
    if (!this.goingAway) return this.#startIdle()
    if (!this.#h2.closed) this.#h2.close()
    this.#linger ??= setTimeout(() => { this.#cut() }, lingerMs).unref()
    this.#h2.unref()
  }

  #onClose (): void {
    this.#stopTimer()
    this.#stopIdle()
    if (this.#linger !== null) clearTimeout(this.#linger)
    this.isGone = true
    this.goingAway = true
    this.#owner.goneSession(this, this.error ?? new StreamClosedError(this.#ready ? 'the upstream closed the connection' : 'the upstream closed the connection before it spoke HTTP/2'))
  }

  #startIdle (): void {
    this.#idle ??= setTimeout(() => { this.close() }, this.#options.keepAliveMs).unref()
    this.#h2.unref()
  }

  #stopIdle (): void {
    this.#h2.ref()
    if (this.#idle === null) return
    clearTimeout(this.#idle)
    this.#idle = null
  }
}

/** The session itself is at its end; nothing was sent. */
const unusable = new Set(['ERR_HTTP2_GOAWAY_SESSION', 'ERR_HTTP2_INVALID_SESSION', 'ERR_HTTP2_OUT_OF_STREAMS'])
