/**
 * An app of yours with the gateway in it, for fastify-cli. Run: npx fastify start -o -l info -g 12000 dist/examples/fastify-cli.js,
 * or, without fastify-cli, node dist/examples/fastify-cli.js
 */
// #region
import type { FastifyInstance } from 'fastify'
import { breakwater, parseConfig, serverOptions } from '../index.ts'

const config = parseConfig({
  admin: { port: Number(process.env['BREAKWATER_ADMIN_PORT'] ?? 9090) },
  pools: { shop: { upstreams: [{ url: 'http://127.0.0.1:9001' }, { url: 'http://127.0.0.1:9002' }], retry: { retries: 1 } } },
  routes: [{ path: '/api/*', pool: 'shop', stripPrefix: '/api' }]
}, 'app.ts')

// Taken with -o only: the limits of the listener, TLS, the request ids and the log.
export const options = serverOptions(config)

// fastify-cli wants both parameters.
export default async function app (instance: FastifyInstance, _options: object): Promise<void> {
  instance.get('/hello', async () => ({ hello: 'from this app' }))
  await instance.register(breakwater, config)
}
// #endregion

if (process.argv[1] === import.meta.filename) {
  const { fastify } = await import('fastify')
  const instance = fastify(options)
  await instance.register(app, {})
  console.log(await instance.listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
  process.once('SIGTERM', () => { void instance.close() })
}
