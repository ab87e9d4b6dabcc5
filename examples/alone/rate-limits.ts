/** Rate limits alone: a route of an app refuses who asks too often, by address or by a header. */
// #region
import Fastify, { type FastifyInstance } from 'fastify'
import { edge, rateLimits } from '../../index.ts'

export async function build (max = 100): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(edge)
  await app.register(rateLimits)

  const byAddress = app.rateLimits.create({ max, windowMs: 60000 })
  const byKey = app.rateLimits.create({ max, by: 'header', name: 'x-api-key' })
  app.get('/search', { onRequest: async (request, reply) => await byAddress(request, reply) ? undefined : reply }, async () => ({ found: 0 }))
  app.post('/orders', { onRequest: async (request, reply) => await byKey(request, reply) ? undefined : reply }, async () => ({ ordered: true }))
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build()).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
