import type { Dispatcher } from 'undici'

/**
 * What gives an exchange its answer, by undici's legacy handlers: exactly one of `onComplete` and `onError` ends it, unless it is
 * upgraded.
 */
export interface Handler extends Pick<Required<Dispatcher.DispatchHandler>, 'onConnect' | 'onHeaders' | 'onData' | 'onComplete' | 'onError'> {
  onRequestSent? (): void
  onResponseStarted? (): void
}

/** What is sent, beside what undici itself takes. */
export interface SendOptions extends Dispatcher.DispatchOptions {
  /** It can be carried by HTTP/2 alone. */
  http2Only?: boolean
  /** How it is given to a sender that speaks HTTP/1.1, where that is not as it is. */
  overHttp1?: ((sender: Dispatcher, options: SendOptions, handler: Dispatcher.DispatchHandler) => void) | null
  /** The client takes trailers. */
  trailers?: boolean
  /** Name, value, name, value, ... behind the body, once that has ended; null: there are none. */
  requestTrailers?: (() => readonly string[] | null) | null
}

/** Whoever sends requests over connections of its own. */
export interface Sender extends Dispatcher {
  /** Nothing new comes any more. */
  readonly closed: boolean
}
