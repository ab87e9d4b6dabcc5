/**
 * `reply.forward()` in ordinary routes, beside other routes, hooks and plugins: an answer that was forwarded has the headers of
 * @fastify/cors and @fastify/helmet like any other. Run: node dist/examples/forward-in-a-route.js
 */
// #region
import cors from '@fastify/cors'
import helmet from '@fastify/helmet'
import Fastify, { type FastifyInstance } from 'fastify'
import { breakerRegistry, edge, forwarder, healthPolling, upstreamPools } from '../index.ts'

export async function build (upstreams = ['http://127.0.0.1:9001', 'http://127.0.0.1:9002']): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(cors, { origin: 'https://shop.example' })
  await app.register(helmet)
  await app.register(edge)
  await app.register(upstreamPools, { pools: { shop: { upstreams, timeouts: { headersMs: 2000 } } } })
  await app.register(breakerRegistry)
  await app.register(healthPolling)
  await app.register(forwarder)

  app.get('/hello', async () => ({ hello: 'from this app' }))
  app.get('/products/:id', (_request, reply) => reply.forward('shop'))
  // What Fastify refuses never reaches an upstream.
  const order = { type: 'object', required: ['product'], properties: { product: { type: 'string' } } }
  app.post('/orders', { schema: { body: order } }, (_request, reply) => reply.forward({ pool: 'shop', prefix: '/v1' }))
  app.get('/private/*', {
    preHandler: async (request, reply) => request.headers.authorization === undefined ? reply.code(401).send({ error: 'who are you?' }) : undefined
  }, (_request, reply) => reply.forward({ pool: 'shop', stripPrefix: '/private' }))
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build()).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
