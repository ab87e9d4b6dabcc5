/** TLS in front of any app: certificates by name, read again when their files change. */
// #region
import Fastify, { type FastifyInstance } from 'fastify'
import { listener, parseConfig, serverOptions } from '../../index.ts'

export async function build (certificate?: { cert: string, key: string }): Promise<FastifyInstance> {
  const config = parseConfig({
    server: certificate === undefined ? {} : { tls: { certificates: [certificate] } },
    pools: { unused: { upstreams: [{ url: 'http://127.0.0.1:9001' }] } }
  }, 'the example')
  const app = Fastify(serverOptions(config)) as unknown as FastifyInstance
  await app.register(listener)
  app.listener.on('event', (event) => { app.log.info(event, 'certificates') })
  app.get('/certificates', async () => app.listener.certificates())
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build()).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8443) }))
