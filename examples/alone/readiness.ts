/** Readiness alone: `/readyz` says whether this instance could serve, from what health checks and breakers know already. */
// #region
import Fastify, { type FastifyInstance } from 'fastify'
import { breakerRegistry, healthPolling, probes, readiness, upstreamPools } from '../../index.ts'

export async function build (upstreams = ['http://127.0.0.1:9001'], intervalMs = 1000): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(upstreamPools, { pools: { shop: { upstreams, health: { intervalMs } } } })
  await app.register(breakerRegistry)
  await app.register(healthPolling)
  await app.register(readiness, { pools: ['shop'] })
  await app.register(probes)
  app.get('/why', async () => app.readiness())
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build()).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
