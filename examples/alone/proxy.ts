/** The catch-all alone: routes of a table are forwarded, and the app's own routes are served beside it. */
// #region
import Fastify, { type FastifyInstance } from 'fastify'
import { edge, forwarder, proxy, routing, upstreamPools } from '../../index.ts'

export async function build (shop = ['http://127.0.0.1:9001'], users = ['http://127.0.0.1:9002']): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(edge)
  await app.register(upstreamPools, { pools: { shop: { upstreams: shop }, users: { upstreams: users } } })
  await app.register(forwarder)

  await app.register(routing, {
    routes: [
      { path: '/users/:id', pool: 'users', methods: ['GET'] },
      { path: '/shop/*', pool: 'shop', stripPrefix: '/shop' }
    ]
  })

  app.get('/about', async () => ({ about: 'served here' }))
  await app.register(proxy)
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build()).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
