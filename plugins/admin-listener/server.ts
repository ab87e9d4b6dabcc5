import { randomUUID } from 'node:crypto'
import { METHODS, STATUS_CODES } from 'node:http'
import Fastify, { LogController, type FastifyBaseLogger, type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { sendProblem } from '../../lib/http/problem.ts'
import { statusProblem } from '../../lib/http/status-problem.ts'
import edge from '../edge.ts'
import { answerMalformed, refuseConnect } from '../malformed.ts'
import { refuse as refuseRequest } from '../refusal.ts'
import { refuseMalformed } from './strict.ts'

/** Connections at the same time; a further one is closed at once. */
const maxConnections = 256

/** A server as strict as the public one. It has no routes; what Fastify itself refuses is a problem document too. */
export function createAdmin (log: FastifyBaseLogger): FastifyInstance {
  const admin = Fastify({
    loggerInstance: quieter(log),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    genReqId: () => randomUUID(),
    requestIdHeader: false,
    requestTimeout: 10000,
    keepAliveTimeout: 5000,
    bodyLimit: 65536,
    return503OnClosing: false,
    // A socket's path has up to 107 bytes, three characters each when encoded.
    routerOptions: { maxParamLength: 1024 },
    http: { headersTimeout: 5000, maxHeaderSize: 16384, connectionsCheckingInterval: 500, requireHostHeader: false },
    frameworkErrors,
    clientErrorHandler: answerMalformed as never
  }) as unknown as FastifyInstance
  admin.server.maxConnections = maxConnections
  admin.server.on('connect', refuseConnect)
  // All methods, so that the routes themselves can say which they do not take.
  for (const method of METHODS) if (method !== 'CONNECT' && !admin.supportedMethods.includes(method)) admin.addHttpMethod(method, { hasBody: true })
  // It knows what is behind the last answer of a connection, and which answers are still to come before a refusal.
  admin.register(edge).after(() => { admin.addHook('onRequest', refuseMalformed) })
  admin.setNotFoundHandler((request, reply) => { refuse(request, reply, 404, 'there is nothing here') })
  admin.setErrorHandler(answer)
  return admin
}

/** The app's log, but of what Fastify tells only warnings and errors; a log that is quieter stays so. */
function quieter (log: FastifyBaseLogger): FastifyBaseLogger {
  const level = ['error', 'fatal', 'silent'].includes(log.level) ? log.level : 'warn'
  return log.child({ listener: 'admin' }, { level })
}

function refuse (request: FastifyRequest, reply: FastifyReply, status: number, detail: string): void {
  sendProblem(reply, statusProblem(status, STATUS_CODES[status] ?? 'Error', request.id, detail))
}

function answer (error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const status = error.statusCode ?? 500
  if (status >= 400 && status < 500) return refuse(request, reply, status, error.message)
  request.log.error({ err: error }, 'admin_failed')
  refuse(request, reply, 500, 'the admin listener failed; the log says why')
}

/** A path with a bad escape: no hook has run. */
function frameworkErrors (_error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  if (request.server.edge.begin(request, reply)) refuseRequest(reply, 'bad_request')
}
