import type { Socket } from 'node:net'
import { Client, type Dispatcher } from 'undici'
import type { Connector } from './connector.ts'

/** A request as the connection sees it that carries it: the handler that undici is given. */
export interface Carried {
  carrier: Carrier | null
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
  socket: Socket | null
  request: Carried | null
}

/**
 * undici's client for one connection, which can give up connecting: undici itself takes a request back only once it is about to
 * send it, and holds the connection's place until then. It carries one request at a time.
 */
export class Carrier extends Client {
  readonly #state: State

  constructor (origin: string, options: Client.Options, connect: Connector['connect']) {
    const state: State = { socket: null, request: null }
    super(origin, {
      ...options,
      connect (target, callback) {
        if (state.request?.abandoned === true) return process.nextTick(callback, new GivenUpError(), null)
        state.socket = connect(target, (...result) => {
          state.socket = null
          callback(...result)
        })
      }
    })
    this.#state = state
  }

  override dispatch (options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const request = handler as unknown as Carried
    request.carrier = this
    this.#state.request = request
    return super.dispatch(options, handler)
  }

  /** Ends the connecting that is done for this request. undici reports it as the request's error. */
  giveUp (request: Carried): void {
    const { socket, request: latest } = this.#state
    if (latest === request) socket?.destroy(new GivenUpError())
  }
}
