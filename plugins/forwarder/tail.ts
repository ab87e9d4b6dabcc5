import type { ServerResponse } from 'node:http'
import { ExchangeError } from '../../lib/exchange.ts'
import type { Reason } from '../../lib/failure.ts'
import { abortConnection } from '../connection.ts'
import type { ResponseBody } from './response-body.ts'

/** How long hooks that are at work on an answer that failed may take until its connection is broken off, in ms. */
const hooksMs = 5000

/** Hooks are at work on an answer that broke: it fails where they hand it back, and the error handler answers. */
export function failInHooks (response: ServerResponse, stream: ResponseBody, reason: Reason): void {
  stream.fail(new ExchangeError(reason))
  const timer = setTimeout(() => { if (!response.headersSent) abortConnection(response) }, hooksMs)
  response.once('close', () => { clearTimeout(timer) })
}
