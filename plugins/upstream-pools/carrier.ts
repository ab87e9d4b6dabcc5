import type { Socket } from 'node:net'
import { Client, type Dispatcher } from 'undici'
import type { IdleLimit } from '../../lib/keep-alive.ts'
import type { Connector } from './connector.ts'
import { acceptContinue } from './unasked-continue.ts'

/** What carries a request, as the request sees it. */
export interface Carriage {
  readonly http2: boolean
  /** The connection, where it is this request's alone. */
  readonly socket: Socket | null
  /** Takes the request back if it has not begun; that is reported as its error. */
  giveUp (request: Carried): void
  /** The connection is there, and the request goes out on it. */
  begin (): void
  /** The request has been answered whole. @param now monotonic ms */
  end (now: number): void
  /** The upstream had ended the connection when the request was sent on it. */
  stale (now: number): void
}

/** A request as the connection sees it that carries it: the handler that undici is given. */
export interface Carried {
  carrier: Carriage | null
  /** True once nobody wants its answer any more. */
  readonly abandoned: boolean
}

/** Nobody waits for the connection any more. */
class GivenUpError extends Error {
  readonly code = 'BREAKWATER_GIVEN_UP'
  constructor () { super('the only request for this connection was given up') }
}

/** What the connector shares with its client, which it cannot know: it is made before it. */
interface State {
  /** The socket that is being connected. */
  connecting: Socket | null
  /** It was made, and has carried nothing yet. */
  made: Socket | null
  /** The connection. */
  open: Socket | null
  request: Carried | null
  /** A request is on the connection. */
  carries: boolean
  /** Monotonic time since which none is; 0: there was none yet. */
  idleSince: number
}

/**
 * undici's client for one connection, which can give up connecting: undici itself takes a request back only once it is about to
 * send it, and holds the connection's place until then. It carries one request at a time, and uses no connection again that has been
 * idle for longer than its upstream was seen to allow.
 */
export class Carrier extends Client implements Carriage {
  readonly http2 = false
  readonly #state: State
  readonly #idle: IdleLimit | null

  /** @param idle learns how long the upstream keeps idle connections; null: nobody does */
  constructor (origin: string, options: Client.Options, connect: Connector['connect'], idle: IdleLimit | null = null) {
    const state: State = { connecting: null, made: null, open: null, request: null, carries: false, idleSince: 0 }
    super(origin, {
      ...options,
      connect (target, callback) {
        if (state.request?.abandoned === true) return process.nextTick(callback, new GivenUpError(), null)
        state.connecting = connect(target, (...result) => {
          state.connecting = null
          const [error, socket] = result
          state.made = socket
          if (error === null) watch(socket, state, idle)
          callback(...result)
        })
      }
    })
    this.#state = state
    this.#idle = idle
  }

  /** The connection; null: there is none. */
  get socket (): Socket | null { return this.#state.open }

  override dispatch (options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const request = handler as unknown as Carried
    request.carrier = this
    this.#state.request = request
    if (this.#idle?.mayKnow === true) this.#renew(this.#idle)
    return super.dispatch(options, handler)
  }

  /** Ends the connecting that is done for this request. undici reports it as the request's error. */
  giveUp (request: Carried): void {
    const { connecting, request: latest } = this.#state
    if (latest === request) connecting?.destroy(new GivenUpError())
  }

  /** The connection is there, and the request goes out on it. */
  begin (): void {
    const state = this.#state
    state.carries = true
    if (state.made === null) return
    acceptContinue(state.made)
    state.made = null
  }

  /** The request has been answered whole: an idle connection holds nothing of it. @param now monotonic ms */
  end (now: number): void {
    this.#state.request = null
    this.#state.carries = false
    this.#state.idleSince = now
  }

  /** The upstream had ended the connection when the request was sent on it. */
  stale (now: number): void {
    if (this.#state.idleSince > 0) this.#idle?.ended(now - this.#state.idleSince, now)
  }

  /** undici makes a new connection where the one that it has is gone. */
  #renew (idle: IdleLimit): void {
    const { open, carries, idleSince } = this.#state
    if (open === null || carries || idleSince === 0) return
    const now = performance.now()
    const limitMs = idle.limitMs(now)
    if (limitMs > 0 && now - idleSince >= limitMs) open.destroy()
  }
}

function watch (socket: Socket, state: State, idle: IdleLimit | null): void {
  state.open = socket
  state.carries = false
  state.idleSince = 0
  socket.on('close', () => { if (state.open === socket) state.open = null })
  if (idle === null) return
  const ended = (): void => {
    const { open, carries, idleSince } = state
    if (open !== socket || carries || idleSince === 0) return
    const now = performance.now()
    idle.ended(now - idleSince, now)
    state.idleSince = 0
  }
  socket.on('end', ended)
  socket.on('error', (error: NodeJS.ErrnoException) => { if (error.code === 'ECONNRESET' || error.code === 'UND_ERR_SOCKET') ended() })
}
