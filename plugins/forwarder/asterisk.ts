import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Dispatcher } from 'undici'

/**
 * Sends `OPTIONS *`. undici refuses a target that is no path, so the path is put right where undici tells of the request that it
 * has just made, before it is written: its documented diagnostics channel, for the time of this one synchronous call.
 */
export function sendAsterisk (dispatcher: Dispatcher, method: string, headers: string[], handler: Dispatcher.DispatchHandler): void {
  const created = (message: unknown): void => {
    const { request } = message as { request: { path: string } }
    request.path = '*'
  }
  subscribe('undici:request:create', created)
  try {
    dispatcher.dispatch({ method: method as Dispatcher.HttpMethod, path: '/', headers, body: null }, handler)
  } finally {
    unsubscribe('undici:request:create', created)
  }
}
