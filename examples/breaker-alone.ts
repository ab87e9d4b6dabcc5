/**
 * A circuit breaker around a call that is no proxying. While the circuit is open the call is not made, and the client is told when
 * to come back. Run: node dist/examples/breaker-alone.js
 */
// #region
import Fastify, { type FastifyInstance } from 'fastify'
import { breakerRegistry } from '../index.ts'
import { BreakerOpenError } from '../plugins/breaker-registry.ts'

export async function build (prices = 'http://127.0.0.1:9001', openMs = 5000): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(breakerRegistry)
  const breaker = app.breakers.get('prices', new URL(prices).host, { consecutiveFailures: 3, openMs })

  app.get<{ Params: { id: string } }>('/price/:id', async (request, reply) => {
    try {
      const answer = await breaker.run(
        () => fetch(new URL(`/price/${encodeURIComponent(request.params.id)}`, prices), { signal: AbortSignal.timeout(1000) }),
        { isFailure: ({ status }) => status >= 500 }
      )
      return await reply.code(answer.status).type('application/json').send(await answer.text())
    } catch (error) {
      if (!(error instanceof BreakerOpenError)) throw error
      return reply.code(503).header('retry-after', Math.ceil(error.retryAfterMs / 1000)).send({ error: 'no prices for the moment' })
    }
  })
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build()).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
