/** Discovery alone: the upstreams of one pool stand in a file, those of the other one tell themselves. */
// #region
import Fastify, { type FastifyInstance } from 'fastify'
import { discovery, upstreamPools, type DiscoverySource } from '../../index.ts'

export async function build (file = 'upstreams.yaml'): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(upstreamPools, {
    pools: {
      shop: { discovery: { file: { path: file } } },
      users: { discovery: { source: 'registrations' } }
    }
  })
  await app.register(discovery)

  const urls = new Set<string>()
  const nobody: Parameters<DiscoverySource['start']>[0] = () => {}
  let report = nobody
  const tell = (): void => report(Array.from(urls, (url) => ({ url })))
  app.discovery.provide('registrations', {
    start (toPool) {
      report = toPool
      tell()
    },
    stop () { report = nobody }
  })
  app.post<{ Body: { url: string } }>('/registrations', async ({ body: { url } }) => {
    urls.add(url)
    tell()
    return app.discovery.view()
  })

  app.get('/discovery', async () => app.discovery.view())
  app.get('/pools', async () => app.pools.list().map(({ name, upstreams }) => ({ pool: name, upstreams: upstreams.map(({ id }) => id) })))
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build()).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
