/** The configuration alone: an app whose pools and limits are changed while it runs. */
// #region
import Fastify, { type FastifyInstance } from 'fastify'
import { configuration, diffConfig, loadShedding, parseConfig, upstreamPools } from '../../index.ts'

export async function build (upstreams = ['http://127.0.0.1:9001']): Promise<FastifyInstance> {
  const app = Fastify()
  const config = parseConfig({ pools: { shop: { upstreams: upstreams.map((url) => ({ url })) } } }, 'the first one')
  await app.register(loadShedding, config.shedding)
  await app.register(upstreamPools, { pools: config.pools })
  await app.register(configuration, { config, parse: parseConfig, diff: diffConfig })

  app.get('/upstreams', async () => app.pools.get('shop')?.upstreams.map(({ id }) => id))
  app.post('/config', async (request, reply) => {
    const verdict = await app.configuration.apply(request.body)
    return reply.code(verdict.valid ? 200 : 422).send(verdict)
  })
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build()).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
