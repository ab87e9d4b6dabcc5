import type { Dispatcher } from 'undici'
import type { SendOptions } from '../http2/sender.ts'
import { dispatchChanged, takingTrailers } from './created.ts'
import type { Outgoing } from './outgoing.ts'

/** The options of a request that may be sent over HTTP/2. */
export function http2Options (options: Dispatcher.DispatchOptions, { takesTrailers, grpc, requestTrailers }: Outgoing): SendOptions {
  return {
    ...options,
    http2Only: grpc,
    overHttp1: takesTrailers ? overHttp1 : null,
    trailers: takesTrailers,
    requestTrailers
  }
}

function overHttp1 (sender: Dispatcher, options: SendOptions, handler: Dispatcher.DispatchHandler): void {
  dispatchChanged(sender, options, handler, takingTrailers)
}
