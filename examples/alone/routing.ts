/** Routing alone: what route a request takes, in an app that does with it what it likes. */
// #region
import Fastify, { type FastifyInstance } from 'fastify'
import { routing } from '../../index.ts'

export async function build (): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(routing, {
    routes: [
      { path: '/users/:id', pool: 'users', methods: ['GET'], rewrite: '/v2/people/:id' },
      { path: '/users/:id', pool: 'preview', methods: ['GET'], headers: { 'x-preview': '*' } },
      { path: '/*', split: { pools: { stable: 95, canary: 5 } } }
    ]
  })

  app.all('/*', async (request, reply) => {
    const { target, match } = app.routeTable.of(request.raw)
    if (target === null || match === null) return reply.code(404).send({ route: null })
    const { route, by } = match
    const pool = route.poolFor({ clientIp: request.ip, headers: request.headers })
    return { route: route.label, by, pool, path: route.path(target.path, '') }
  })
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build()).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
