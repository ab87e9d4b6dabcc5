/** The history alone: what requests and upstreams did lately, in steps of five seconds. */
// #region
import Fastify, { type FastifyInstance } from 'fastify'
import { edge, forwarder, history, observation, upstreamPools } from '../../index.ts'

export async function build (upstreams = ['http://127.0.0.1:9001', 'http://127.0.0.1:9002'], clock = () => performance.now()): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(edge)
  await app.register(observation)
  await app.register(upstreamPools, { pools: { shop: { upstreams } } })
  await app.register(history, { clock })
  await app.register(forwarder)

  app.get('/shop/*', (_request, reply) => reply.forward({ pool: 'shop', stripPrefix: '/shop' }))
  app.get('/failures', { config: { accessLog: false } }, async () => {
    const { shop } = app.history.since(0).pools
    return { failures: shop?.failure.reduce((sum, each) => sum + each, 0) ?? 0, p95: shop?.p95.at(-1) ?? null }
  })
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build()).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
