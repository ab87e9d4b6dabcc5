/**
 * The Fastify options of an app that is a proxy and nothing else: limits of the listener, request ids, the answers to what never
 * becomes a request, and the log. In somebody else's app they are that app's own business.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { LogController, type FastifyError, type FastifyReply, type FastifyRequest, type FastifyServerOptions } from 'fastify'
import type { Config } from './config/schema.ts'
import { keptRequestFields } from './lib/http/field-limit.ts'
import { LogDestination } from './plugins/access-log/destination.ts'
import { requestIdSource } from './plugins/edge.ts'
import { answerMalformed, type ParserError } from './plugins/malformed.ts'
import { refuse } from './plugins/refusal.ts'
import { UpgradingMessage } from './plugins/upgrading-message.ts'

/** Log bytes that may wait for a slow sink; what comes beyond is dropped, and the number of dropped lines is logged. */
const maxLogBytes = 64 * 1024 * 1024

/** The options for `Fastify()`, or for fastify-cli's `-o`. */
export function serverOptions (config: Config): FastifyServerOptions {
  const { server } = config
  const headersTimeout = server.requestTimeoutMs === 0 ? server.headersTimeoutMs : Math.min(server.headersTimeoutMs, server.requestTimeoutMs)
  const limits = {
    headersTimeout,
    requestTimeout: server.requestTimeoutMs,
    keepAliveTimeout: server.keepAliveTimeoutMs,
    maxHeaderSize: server.maxHeaderBytes,
    // Node looks for late requests only so often: a time limit is not to be late by more than a tenth.
    connectionsCheckingInterval: Math.min(1000, Math.max(50, Math.floor(headersTimeout / 10))),
    // A request without Host is refused like any other: with a reason, and in the log.
    requireHostHeader: false,
    IncomingMessage: UpgradingMessage
  }
  return {
    serverFactory: (handler) => makeServer(limits, handler),
    keepAliveTimeout: server.keepAliveTimeoutMs,
    requestTimeout: server.requestTimeoutMs,
    return503OnClosing: false,
    forceCloseConnections: false,
    requestIdHeader: false,
    genReqId: requestIdSource(server) as never,
    // pino has a short way to a child, which Fastify misses by always giving options.
    childLoggerFactory: (logger, bindings, options) => Object.keys(options).length === 0 ? logger.child(bindings) : logger.child(bindings, options),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    routerOptions: { maxParamLength: Math.max(65536, server.maxHeaderBytes), ignoreTrailingSlash: false, querystringParser: unparsed },
    frameworkErrors,
    clientErrorHandler: answerMalformed as never,
    ...logOptions()
  }
}

/** The proxy never reads a query: it passes it on as it came. */
function unparsed (): Record<string, string> { return {} }

function makeServer (limits: object, handler: (request: IncomingMessage, response: ServerResponse) => void): Server {
  const server = createServer(limits, handler)
  server.maxHeadersCount = keptRequestFields
  // A client that asks before it sends is told to go on when somebody reads the body, and not when it is refused.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    continueOnRead(request, response)
    server.emit('request', request, response)
  })
  // An expectation that is not 100-continue: RFC 9110 lets us ignore it.
  server.on('checkExpectation', (request, response) => { server.emit('request', request, response) })
  server.on('connect', (request: IncomingMessage, socket: Socket) => { refuseConnect(server, request, socket) })
  return server
}

/**
 * Node has let go of the connection of a CONNECT: nobody else listens to its errors any more, nor tells an earlier response that is
 * still being sent when the client can take more of it.
 */
function refuseConnect (server: Server, { method }: IncomingMessage, socket: Socket & { _httpMessage?: ServerResponse | null }): void {
  socket.on('error', () => {})
  socket.on('drain', () => { socket['_httpMessage']?.emit('drain') })
  const error: ParserError = Object.assign(new Error('tunnels are not made here'), { code: 'HPE_INVALID_METHOD', method: method as string })
  server.emit('clientError', error, socket)
}

function continueOnRead (request: IncomingMessage, response: ServerResponse): void {
  const read = request._read.bind(request)
  request._read = (size) => {
    request._read = read
    if (!response.headersSent) response.writeContinue()
    read(size)
  }
}

/** What Fastify refuses before any hook runs: a path with a bad escape. */
function frameworkErrors (_error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const { edge, accessLog } = request.server
  if (edge?.begin(request, reply) === false) return
  accessLog?.follow(request, reply)
  refuse(reply, 'bad_request')
}

/** One for the process, however many apps it holds. */
let stdout: LogDestination | null = null

/** The log: JSON lines, gathered and written without blocking, flushed when the process exits. */
function logOptions (): Pick<FastifyServerOptions, 'logger'> | Record<string, never> {
  // fastify-cli makes a transport of its own for pretty logs, and pino takes only one of the two.
  const pretty = process.argv.includes('-P') || process.argv.includes('--pretty-logs') || process.env['FASTIFY_PRETTY_LOGS'] !== undefined
  if (pretty) return {}
  stdout ??= new LogDestination(1, maxLogBytes)
  return { logger: { stream: stdout } as never }
}
