/** Metrics alone: what the app has of ours is counted, metrics of your own stand beside it. */
// #region
import Fastify, { type FastifyInstance } from 'fastify'
import { Counter } from 'prom-client'
import { edge, metrics, observation } from '../../index.ts'

export async function build (): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(edge)
  await app.register(observation)
  await app.register(metrics, { durationBuckets: [0.01, 0.1, 1], process: false })

  const { registry } = app.edgeMetrics
  const orders = new Counter({ name: 'shop_orders_total', help: 'Orders.', registers: [registry] })

  app.post('/orders', async () => {
    orders.inc()
    return 'thanks'
  })
  // Not counted itself.
  app.get('/metrics', { config: { accessLog: false } }, async (_request, reply) => {
    const { contentType, text } = await app.edgeMetrics.expose('text')
    return reply.header('content-type', contentType).send(text)
  })
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build()).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
