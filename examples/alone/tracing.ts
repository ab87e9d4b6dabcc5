/** Tracing alone: spans for requests, in an app with an SDK or without one. */
// #region
import { trace } from '@opentelemetry/api'
import Fastify, { type FastifyInstance } from 'fastify'
import { edge, observation, tracing } from '../../index.ts'

export async function build (): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(edge)
  await app.register(observation)
  await app.register(tracing, { continueFrom: 'anybody' })

  app.get('/price', async (request) => {
    // A span of your own, as a child of the request's. Without an SDK it is none.
    const parent = app.tracing.contextOf(request)
    const span = parent === null ? null : trace.getTracer('shop').startSpan('look up the price', {}, parent)
    span?.end()
    return { price: 7, traceId: request.exchange.traceId }
  })
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build()).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
