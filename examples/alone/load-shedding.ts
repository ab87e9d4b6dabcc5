/** Load shedding alone: an app that renders pages and refuses the third request at the same time instead of slowing down all of them. */
// #region
import { setTimeout as sleep } from 'node:timers/promises'
import Fastify, { type FastifyInstance } from 'fastify'
import { loadShedding } from '../../index.ts'

export async function build (render = () => sleep(200, 'rendered')): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(loadShedding, { maxInFlight: 2, retryAfterSeconds: 3 })

  app.get('/page', render)
  // Never refused, and takes no place.
  app.get('/shedding', { config: { shedExempt: true } }, async () => app.shedding.view())
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build()).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
