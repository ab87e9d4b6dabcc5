/**
 * The admin routes inside an app that exists already, below a prefix, behind a token. They are not shed, not access-logged, and no
 * other origin may read them. Run: BREAKWATER_ADMIN_TOKEN=... node dist/examples/admin-under-prefix.js
 */
// #region
import Fastify, { type FastifyInstance } from 'fastify'
import { adminRoutes, breakerRegistry, edge, eventJournal, forwarder, healthPolling, readiness, upstreamPools } from '../index.ts'

export async function build (token: string, upstreams = ['http://127.0.0.1:9001', 'http://127.0.0.1:9002']): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(edge)
  await app.register(upstreamPools, { pools: { shop: { upstreams } } })
  await app.register(breakerRegistry)
  await app.register(healthPolling)
  await app.register(eventJournal)
  await app.register(readiness)
  await app.register(forwarder)

  app.get('/shop/*', (_request, reply) => reply.forward({ pool: 'shop', stripPrefix: '/shop' }))
  await app.register(adminRoutes, { prefix: '/ops', token })
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) {
  const token = process.env['BREAKWATER_ADMIN_TOKEN']
  if (token === undefined || token === '') throw new Error('set BREAKWATER_ADMIN_TOKEN')
  console.log(await (await build(token)).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
}
