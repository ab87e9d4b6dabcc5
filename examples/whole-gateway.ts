/**
 * The whole gateway in an app of yours: one plugin, one configuration. `/readyz` and `/livez` are on the public listener, the admin
 * routes on a listener of their own. Run: node dist/examples/whole-gateway.js
 */
// #region
import Fastify, { type FastifyInstance } from 'fastify'
import { breakwater, parseConfig, serverOptions } from '../index.ts'

export async function build (upstreams = ['http://127.0.0.1:9001', 'http://127.0.0.1:9002'], adminPort = 9090): Promise<FastifyInstance> {
  const config = parseConfig({
    admin: { port: adminPort },
    shedding: { maxInFlight: 64 },
    pools: {
      shop: {
        upstreams: upstreams.map((url) => ({ url })),
        health: { path: '/healthz', intervalMs: 2000 },
        breaker: { consecutiveFailures: 3, openMs: 5000 }
      }
    },
    routes: [{ path: '/api/*', pool: 'shop', stripPrefix: '/api' }]
  }, 'whole-gateway.ts')
  const app = Fastify(serverOptions(config))
  await app.register(breakwater, config)
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) {
  const app = await build(undefined, Number(process.env['BREAKWATER_ADMIN_PORT'] ?? 9090))
  console.log(await app.listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
  process.once('SIGTERM', () => { void app.close() })
}
