import { createServer, type IncomingMessage, type Server, type ServerOptions as NodeOptions, type ServerResponse } from 'node:http'
import type { ServerOptions } from '../../config/schema-server.ts'
import { keptRequestFields } from '../../lib/http/field-limit.ts'
import { refuseConnect } from '../malformed.ts'
import { UpgradingMessage } from '../upgrading-message.ts'

export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void

/** Time to receive a head, in ms: Node refuses one that is longer than the time for the whole request. */
export function headersTimeoutOf ({ headersTimeoutMs, requestTimeoutMs }: ServerOptions): number {
  return requestTimeoutMs === 0 ? headersTimeoutMs : Math.min(headersTimeoutMs, requestTimeoutMs)
}

/** The HTTP/1 server: Node's own, with our limits. */
export function createHttp1 (options: ServerOptions, handler: RequestHandler): Server {
  const headersTimeout = headersTimeoutOf(options)
  const limits: NodeOptions = {
    headersTimeout,
    requestTimeout: options.requestTimeoutMs,
    keepAliveTimeout: options.keepAliveTimeoutMs,
    maxHeaderSize: options.maxHeaderBytes,
    // Node looks for late requests only so often: a time limit is not to be late by more than a tenth.
    connectionsCheckingInterval: Math.min(1000, Math.max(50, Math.floor(headersTimeout / 10))),
    // A request without Host is refused like any other: with a reason, and in the log.
    requireHostHeader: false,
    IncomingMessage: UpgradingMessage as typeof IncomingMessage
  }
  const server = createServer(limits, handler)
  server.maxHeadersCount = keptRequestFields
  if (options.maxConnections > 0) server.maxConnections = options.maxConnections
  // A client that asks before it sends is told to go on when somebody reads the body, and not when it is refused.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    continueOnRead(request, response)
    server.emit('request', request, response)
  })
  // An expectation that is not 100-continue: RFC 9110 lets us ignore it.
  server.on('checkExpectation', (request, response) => { server.emit('request', request, response) })
  server.on('connect', refuseConnect)
  return server
}

/** Tells a client to go on when somebody reads its body, and not when it is refused. */
export function continueOnRead (request: IncomingMessage, response: ServerResponse): void {
  const read = request._read.bind(request)
  request._read = (size) => {
    request._read = read
    if (!response.headersSent) response.writeContinue()
    read(size)
  }
}
