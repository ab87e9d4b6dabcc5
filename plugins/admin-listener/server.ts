import { randomUUID } from 'node:crypto'
import { METHODS, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import Fastify, { LogController, type FastifyBaseLogger, type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { malformedReason } from '../../lib/classify.ts'
import { sendProblem } from '../../lib/http/problem.ts'
import { statusProblem } from '../../lib/http/status-problem.ts'
import { closeGently } from '../connection.ts'
import { rawProblem } from '../raw-problem.ts'

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
    http: { headersTimeout: 5000, maxHeaderSize: 16384, connectionsCheckingInterval: 500 },
    frameworkErrors: answer,
    clientErrorHandler
  }) as unknown as FastifyInstance
  admin.server.maxConnections = maxConnections
  // All methods, so that the routes themselves can say which they do not take.
  for (const method of METHODS) if (method !== 'CONNECT' && !admin.supportedMethods.includes(method)) admin.addHttpMethod(method, { hasBody: true })
  admin.addHook('onRequest', async (request, reply) => { reply.header('x-request-id', request.id) })
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

/** What Node's parser refuses, and requests that came too slowly. */
function clientErrorHandler (error: NodeJS.ErrnoException, socket: Socket): void {
  const reason = malformedReason(error)
  if (reason === null || !socket.writable || socket.bytesRead === 0) {
    socket.destroy()
    return
  }
  socket.end(rawProblem(reason))
  // The client may be sending still: what it sends is dropped, so that closing does not take the answer away.
  socket.resume()
  closeGently(socket, 500)
}
