/** What is left to be done for an answer that is out of the forwarder's hands. */
import type { ServerResponse } from 'node:http'
import { ExchangeError, type Exchange } from '../../lib/exchange.ts'
import type { Reason } from '../../lib/failure.ts'
import { abortConnection } from '../connection.ts'
import type { ResponseBody } from './response-body.ts'

/**
 * The answer is whole on our side, and the client is slow to take the last of it, or does not take it at all: from now on the
 * connection's own idle timer watches, which sees the progress of a single write, too.
 * @param bodyIdleMs 0: no limit
 */
export function watchTail (response: ServerResponse, exchange: Exchange, bodyIdleMs: number): void {
  if (bodyIdleMs === 0 || response.writableFinished || response.destroyed) return
  response.setTimeout(bodyIdleMs, () => {
    exchange.fail('body_idle_timeout')
    abortConnection(response)
  })
}

/** How long hooks that are at work on an answer that failed may take until its connection is broken off, in ms. */
const hooksMs = 5000

/** Hooks are at work on an answer that broke: it fails where they hand it back, and the error handler answers. */
export function failInHooks (response: ServerResponse, stream: ResponseBody, reason: Reason): void {
  stream.fail(new ExchangeError(reason))
  const timer = setTimeout(() => { if (!response.headersSent) abortConnection(response) }, hooksMs)
  response.once('close', () => { clearTimeout(timer) })
}
