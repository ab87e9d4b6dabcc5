/** Pools alone: named groups of upstreams, each with bounded connections, for an app that does its own calls. */
// #region
import Fastify, { type FastifyInstance } from 'fastify'
import { upstreamPools } from '../../index.ts'

export async function build (upstreams = ['http://127.0.0.1:9001', 'http://127.0.0.1:9002']): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(upstreamPools, { pools: { shop: { upstreams, connections: { max: 8 } } } })

  app.get('/pools', async () => app.pools.list().map((pool) =>
    ({ pool: pool.name, upstreams: pool.upstreams.map(({ id, draining, inFlight }) => ({ id, draining, inFlight })) })))

  // `dispatcher` is undici's: never more than `connections.max` connections to this upstream.
  app.get<{ Params: { id: string } }>('/ask/:id', async (request, reply) => {
    const upstream = app.pools.find('shop', request.params.id)
    if (upstream === undefined) return reply.code(404).send({ error: 'no such upstream' })
    const { body } = await upstream.dispatcher.request({ method: 'GET', path: '/' })
    return body.json()
  })

  app.post<{ Params: { id: string } }>('/drain/:id', async (request) => ({ known: app.pools.setDraining('shop', request.params.id, true) }))
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build()).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
