import { STATUS_CODES } from 'node:http'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Ajv, type ErrorObject } from 'ajv'
import { sendProblem } from '../../lib/http/problem.ts'
import { statusProblem } from '../../lib/http/status-problem.ts'

/** Answers with a problem document. */
export function refuse (request: FastifyRequest, reply: FastifyReply, status: number, detail: string): void {
  sendProblem(reply, statusProblem(status, STATUS_CODES[status] ?? 'Error', request.id, detail))
}

/** Thrown by a handler: what it cannot do, as a status and a sentence for the caller. */
export class AdminError extends Error {
  readonly statusCode: number

  constructor (statusCode: number, detail: string) {
    super(detail)
    this.statusCode = statusCode
  }
}

/** Texts become numbers where they come from a URL, and only there; unknown keys are refused, never dropped. */
const ofBody = new Ajv({ allErrors: true, useDefaults: true, code: { optimize: false } })
const ofUrl = new Ajv({ allErrors: true, useDefaults: true, coerceTypes: 'array', code: { optimize: false } })

/** `1e400` would become a number that no bound holds, `0x10` and a space one that nobody meant. */
const plainNumber = /^-?\d{1,15}$/

/** Checks what came in a URL: numbers in digits alone. */
function urlCheck (schema: { properties?: Record<string, { type?: string }> }): (data: Record<string, unknown>) => boolean {
  const numbers = Object.entries(schema.properties ?? {}).filter(([, { type }]) => type === 'integer' || type === 'number').map(([name]) => name)
  const validate = ofUrl.compile(schema)
  const check = Object.assign((data: Record<string, unknown>): boolean => {
    // Such a text stays one, and is refused for that.
    for (const name of numbers) if (typeof data[name] === 'string' && !plainNumber.test(data[name])) data[name] = 'no number'
    const valid = validate(data)
    check.errors = validate.errors
    return valid
  }, { errors: validate.errors })
  return check
}

function complaint ({ instancePath, keyword, message, params }: ErrorObject, part: string): string {
  const path = part + instancePath.replaceAll('/', '.')
  if (keyword === 'additionalProperties') return `${path}.${String(params['additionalProperty'])} is not known`
  if (keyword === 'required') return `${path}.${String(params['missingProperty'])} is missing`
  if (keyword === 'enum') return `${path} must be one of ${(params['allowedValues'] as string[]).join(', ')}`
  return `${path} ${message ?? 'is wrong'}`
}

/** How this scope reads requests, writes answers and tells errors, whatever the app around it does. */
export function setReplies (app: FastifyInstance): void {
  app.setValidatorCompiler(({ schema, httpPart }) => httpPart === 'body' ? ofBody.compile(schema as object) : urlCheck(schema as object))
  app.setSchemaErrorFormatter((errors, part) => {
    // `if` only says that its `then` did not hold, which is told by itself.
    const told = (errors as ErrorObject[]).filter(({ keyword }) => keyword !== 'if')
    return new Error(told.map((each) => complaint(each, part)).join('; '))
  })
  // The schemas describe the answers; they do not cut them to size.
  app.setSerializerCompiler(() => (data) => JSON.stringify(data))

  app.removeAllContentTypeParsers()
  const parse = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (request, text, done) => {
    if (text === '') done(null, {})
    else parse(request, text, done)
  })

  app.setErrorHandler((error: FastifyError, request, reply) => {
    const status = error.statusCode ?? 500
    if (error instanceof AdminError || (status >= 400 && status < 500)) return refuse(request, reply, status, error.message)
    request.log.error({ err: error }, 'admin_failed')
    refuse(request, reply, 500, 'the admin route failed; the log says why')
  })

  app.addHook('onRequest', async (_request, reply) => { reply.header('cache-control', 'no-store') })

  // Whatever the app around does: no other origin may read these answers.
  app.addHook('onSend', async (_request, reply) => {
    for (const name of Object.keys(reply.getHeaders())) if (name.startsWith('access-control-')) reply.removeHeader(name)
  })
}
