/** Health polling alone: an app that only watches, and tells what it sees. */
// #region
import Fastify, { type FastifyInstance } from 'fastify'
import { healthPolling, upstreamPools } from '../../index.ts'

export async function build (upstreams = ['http://127.0.0.1:9001', 'http://127.0.0.1:9002'], intervalMs = 1000): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(upstreamPools, { pools: { shop: { upstreams, health: { intervalMs, fall: 2 } } } })
  await app.register(healthPolling)

  const told: string[] = []
  app.health.on('change', ({ upstream, healthy, cause }) => {
    told.push(`${upstream} is ${healthy ? 'healthy' : 'unhealthy'}: ${cause}`)
    if (told.length > 100) told.shift()
  })
  app.get('/health', async () => ({ upstreams: app.health.list() }))
  app.get('/told', async () => told)
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build()).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
