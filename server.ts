/**
 * The Fastify options of an app that is a proxy and nothing else: limits of the listener, request ids, the answers to what never
 * becomes a request, and the log. In somebody else's app they are that app's own business.
 */
import { LogController, type FastifyError, type FastifyReply, type FastifyRequest, type FastifyServerOptions } from 'fastify'
import type { Config } from './config/schema.ts'
import { LogDestination } from './plugins/access-log/destination.ts'
import { requestIdSource } from './plugins/edge.ts'
import { createListener } from './plugins/listener/create.ts'
import { answerMalformed } from './plugins/malformed.ts'
import { refuse } from './plugins/refusal.ts'

/** Log bytes that may wait for a slow sink; what comes beyond is dropped, and the number of dropped lines is logged. */
const maxLogBytes = 64 * 1024 * 1024

/** The options for `Fastify()`, or for fastify-cli's `-o`. */
export function serverOptions (config: Config): FastifyServerOptions {
  const { server } = config
  return {
    serverFactory: (handler) => createListener(server, handler),
    // Only for what Fastify says of where it listens: the server is ours.
    ...server.tls !== undefined && { https: true },
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

/** What Fastify refuses before any hook runs: a path with a bad escape. */
function frameworkErrors (_error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const { edge, observers } = request.server
  if (edge?.begin(request, reply) === false) return
  observers?.follow(request, reply)
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
