import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Verdict } from '../../plugins/configuration.ts'
import type {} from '../../plugins/listener.ts'
import { read, recordWrite, write } from './define.ts'
import { ConfigBody, ConfigInvalid, ConfigValid, ConfigView, ReasonBody } from './schemas.ts'

/** Far above any real configuration. */
const maxConfigBytes = 4194304

/** GET /config · POST /config/validate, /config/reload, where the app can change its configuration. */
export function configRoutes (app: FastifyInstance, source: FastifyInstance, config: () => unknown): void {
  const changeable = source.hasDecorator('configuration')

  read(app, '/config', { summary: 'The configuration in force, and the latest that was refused', reply: ConfigView }, async () =>
    changeable ? { ...config() as object, status: { ...source.configuration.view(), certificates: source.hasDecorator('listener') ? source.listener.certificates() : [] } } : config())

  if (!changeable) return

  write(app, '/config/validate', {
    summary: 'Judge a configuration and say what would change; changes nothing', body: ConfigBody, reply: ConfigValid, replies: { 422: ConfigInvalid }, bodyLimit: maxConfigBytes
  }, async (request, reply) => answer(reply, source.configuration.validate(hasBody(request) ? request.body : undefined)))

  write(app, '/config/reload', {
    summary: 'Read the configuration again and swap it in', body: ReasonBody, reply: ConfigValid, replies: { 422: ConfigInvalid }
  }, async (request, reply) => {
    const { reason = null } = request.body
    const verdict = await source.configuration.reload('admin', reason)
    // what was refused has an event of its own, config_rejected, with the reason
    if (verdict.valid) recordWrite(source, request, { action: 'config_reload', reason })
    return answer(reply, verdict)
  })
}

function answer (reply: FastifyReply, verdict: Verdict): Verdict {
  if (!verdict.valid) reply.code(422)
  return verdict
}

function hasBody ({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
