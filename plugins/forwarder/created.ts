import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Dispatcher } from 'undici'

/** What of undici's own request is put right. */
export interface CreatedRequest {
  path: string
  /** name, value, name, value, ... */
  headers: string[]
}

const channel = 'undici:request:create'

/**
 * Dispatches a request that undici would refuse or shorten as we mean it: it is changed where undici tells of the request that it has
 * just made, before it is written; its documented diagnostics channel, for the time of this one synchronous call. A pool that makes
 * its request later makes it unchanged.
 */
export function dispatchChanged (sender: Pick<Dispatcher, 'dispatch'>, options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler, change: (request: CreatedRequest) => void): void {
  const created = (message: unknown): void => {
    // Only the first one is ours: its failure may make another attempt begin within this call.
    unsubscribe(channel, created)
    change((message as { request: CreatedRequest }).request)
  }
  subscribe(channel, created)
  try {
    sender.dispatch(options, handler)
  } finally {
    unsubscribe(channel, created)
  }
}

/** undici refuses a target that is no path. */
export function toAsterisk (request: CreatedRequest): void { request.path = '*' }

/** TE goes only to the next server, which Connection has to say (RFC 9110 section 10.1.4); undici keeps that field to itself. */
export function takingTrailers (request: CreatedRequest): void { request.headers.push('te', 'trailers', 'connection', 'TE') }
