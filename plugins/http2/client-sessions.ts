import { constants, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { ClientRequest } from './client-request.ts'
import { cutSession } from './cut.ts'

export interface ClientSessionLimits {
  /** Time to receive a request's head, and for a new session to begin its first one, in ms. */
  headersMs: number
  /** Time to receive a whole request, in ms; 0: none. gRPC streams are not limited by it: their route's limits are theirs. */
  requestMs: number
  /** How long a session without requests is kept, in ms. */
  keepAliveMs: number
  /** Streams that may end unanswered in a second by the client's doing; frames without use in hundreds. */
  maxResetsPerSecond: number
}

/** A session was closed because of what its client sends. */
export interface Flood {
  readonly what: 'resets' | 'frames'
  readonly address: string
}

interface State {
  readonly address: string
  open: number
  /** Monotonic time since which there is no request. */
  idleSince: number
  used: boolean
  /** The last stream that has begun for us, and a later one whose head has not come whole, with the time at which that was seen. */
  lastStream: number
  unread: number
  unreadSince: number
  /** Requests that have not come whole. */
  readonly pending: Set<ClientRequest>
  readonly socket: Socket
  /** Monotonic time since which only the end of its connection is waited for; -1: it is not. */
  overSince: number
  /** Bytes that had come and gone when something last had, and the time at which that was seen. */
  moved: number
  movedAt: number
  /** Sweeps since it was asked for a sign of life; -1: it was not. */
  asked: number
  /** It is about to be closed for a flood. */
  calmed: boolean
  second: number
  resets: number
  frames: number
  /** Those that are not over, and of them those that were closed when they were last looked at. */
  readonly streams: Set<ServerHttp2Stream>
  readonly closed: Set<ServerHttp2Stream>
}

/** Frames without use for each reset that is allowed. */
const framesPerReset = 100

/** What our own question adds to the bytes that have gone: a PING, or SETTINGS without a setting, which is shorter. */
const askedBytes = 17

/** Time for a client to read a GOAWAY and to end its side, in ms. */
const lingerMs = 1000

const { NGHTTP2_ENHANCE_YOUR_CALM } = constants

/**
 * Watches clients' sessions: Node has neither time limits for what a client sends over HTTP/2, nor a limit of its own for streams that
 * are opened and reset. One timer looks at all of them, and runs only while there are any.
 */
export class ClientSessions {
  readonly #limits: ClientSessionLimits
  readonly #onFlood: (flood: Flood) => void
  readonly #sessions = new Map<ServerHttp2Session, State>()
  readonly #sweepMs: number
  /** So many sweeps take the time for a head. */
  readonly #patience: number
  #timer: NodeJS.Timeout | null = null

  constructor (limits: ClientSessionLimits, onFlood: (flood: Flood) => void) {
    this.#limits = limits
    this.#onFlood = onFlood
    this.#sweepMs = Math.min(1000, Math.max(50, Math.floor(Math.min(limits.headersMs, limits.keepAliveMs) / 10)))
    this.#patience = Math.ceil(limits.headersMs / this.#sweepMs)
  }

  add (session: ServerHttp2Session, address: string, socket: Socket): void {
    const now = performance.now()
    const state: State = { address, open: 0, idleSince: now, used: false, lastStream: 0, unread: 0, unreadSince: 0, pending: new Set(), streams: new Set(), closed: new Set(), socket, overSince: -1, moved: 0, movedAt: now, asked: -1, calmed: false, second: now, resets: 0, frames: 0 }
    this.#sessions.set(session, state)
    // What has come while our own loop stood still is read first.
    this.#timer ??= setInterval(() => { setImmediate(() => { this.#sweep() }) }, this.#sweepMs).unref()
    const count = (): void => { this.#frame(session, state) }
    session.on('ping', count).on('remoteSettings', count).on('priority', count)
      .on('stream', (stream: ServerHttp2Stream) => { this.#begun(session, state, stream) })
      .on('close', () => {
        this.#sessions.delete(session)
        if (this.#sessions.size > 0 || this.#timer === null) return
        clearInterval(this.#timer)
        this.#timer = null
      })
  }

  /** A request of a session whose body is still to come. */
  receives (session: ServerHttp2Session, request: ClientRequest): void {
    const state = this.#sessions.get(session)
    if (state === undefined || this.#limits.requestMs === 0) return
    state.pending.add(request)
    request.on('close', () => { state.pending.delete(request) })
  }

  #begun (session: ServerHttp2Session, state: State, stream: ServerHttp2Stream): void {
    state.open++
    state.streams.add(stream)
    state.used = true
    state.lastStream = Math.max(state.lastStream, stream.id ?? 0)
    // We break a stream off by destroying it: what closes it before that is the client's doing.
    let cut = stream.closed
    stream.on('priority', () => { this.#frame(session, state) }).on('aborted', () => { cut ||= !stream.destroyed }).on('close', () => {
      state.open--
      state.streams.delete(stream)
      state.closed.delete(stream)
      if (state.open === 0) state.idleSince = performance.now()
      if (cut || (!isBrokenOff(stream) && (stream.rstCode !== 0 || !stream.headersSent))) this.#reset(session, state)
    })
  }

  #reset (session: ServerHttp2Session, state: State): void {
    this.#newSecond(state)
    if (++state.resets > this.#limits.maxResetsPerSecond) this.#calm(session, state, 'resets')
  }

  #frame (session: ServerHttp2Session, state: State): void {
    this.#newSecond(state)
    if (++state.frames > this.#limits.maxResetsPerSecond * framesPerReset) this.#calm(session, state, 'frames')
  }

  #newSecond (state: State): void {
    const now = performance.now()
    if (now - state.second < 1000) return
    state.second = now
    state.resets = state.frames = 0
  }

  #calm (session: ServerHttp2Session, state: State, what: Flood['what']): void {
    if (session.destroyed || state.calmed) return
    state.calmed = true
    this.#onFlood({ what, address: state.address })
    session.destroy(NGHTTP2_ENHANCE_YOUR_CALM as never)
  }

  #sweep (): void {
    const now = performance.now()
    const { headersMs, keepAliveMs, requestMs } = this.#limits
    for (const [session, state] of this.#sessions) {
      if (this.#lingers(session, state, now)) continue
      for (const request of state.pending) {
        if (request.complete) state.pending.delete(request)
        else if (now - request.receivedAt >= requestMs) {
          state.pending.delete(request)
          request.onLate?.()
        }
      }
      this.#dropClosed(session, state)
      if (this.#headIsLate(session, state, now) || this.#isDead(session, state, now)) session.destroy(NGHTTP2_ENHANCE_YOUR_CALM as never)
      else if (state.open === 0 && now - state.idleSince >= (state.used ? keepAliveMs : headersMs)) session.close()
    }
  }

  /** True where a session is over. Node waits until its client has read all and has ended its own side, for ever; here it has a time for it. */
  #lingers (session: ServerHttp2Session, state: State, now: number): boolean {
    if (!session.destroyed && !(session.closed && state.open === 0)) return false
    if (state.overSince === -1) state.overSince = now
    else if (now - state.overSince >= lingerMs) cutSession(session)
    return true
  }

  /** What is left to send on a stream that was reset without an error is never sent, and Node waits for it. */
  #dropClosed (session: ServerHttp2Session, state: State): void {
    for (const stream of state.streams) {
      if (!stream.closed) continue
      if (!state.closed.has(stream)) {
        state.closed.add(stream)
        continue
      }
      // What was never answered is counted when it closes.
      if (stream.headersSent) this.#reset(session, state)
      stream.destroy()
    }
  }

  /** A stream that nghttp2 has begun to read, and of which we know nothing yet, has not got its head whole. */
  #headIsLate (session: ServerHttp2Session, state: State, now: number): boolean {
    const { lastProcStreamID = 0 } = session.state
    if (lastProcStreamID <= state.lastStream) {
      state.unread = 0
      return false
    }
    if (state.unread !== lastProcStreamID) {
      state.unread = lastProcStreamID
      state.unreadSince = now
      return false
    }
    return now - state.unreadSince >= this.#limits.headersMs
  }

  /**
   * A connection with requests on which nothing moves is asked for a sign of life, and is dead where nothing comes of it either: its
   * client is gone, or does not read at all, or nghttp2 has given it up for what came on it. Then it neither reads nor writes any more,
   * does not see the client's end, and Node tells nobody. Behind a GOAWAY Node sends no PING, but SETTINGS, which want an answer, too.
   * The time for that is counted in sweeps: while our own loop stands still, nobody can be heard.
   */
  #isDead (session: ServerHttp2Session, state: State, now: number): boolean {
    const { socket } = state
    const moved = socket.bytesRead + socket.bytesWritten
    if (state.open === 0 || moved - state.moved > (state.asked === -1 ? 0 : askedBytes)) {
      state.moved = moved
      state.movedAt = now
      state.asked = -1
      return false
    }
    if (state.asked !== -1) return ++state.asked >= this.#patience
    if (now - state.movedAt < this.#limits.headersMs) return false
    state.asked = 0
    if (session.closed) session.settings({})
    else session.ping(ignore)
    return false
  }
}

/** We destroyed it with an error. Node's own error says that it was reset, by the client or by nghttp2 for what the client sent. */
function isBrokenOff ({ errored }: ServerHttp2Stream): boolean {
  return errored !== null && (errored as NodeJS.ErrnoException).code !== 'ERR_HTTP2_STREAM_ERROR'
}

function ignore (): void {}
