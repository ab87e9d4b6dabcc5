/** The way down alone: SIGTERM lets requests finish within the grace, and the exit code tells whether they did. */
// #region
import { setTimeout as sleep } from 'node:timers/promises'
import Fastify, { type FastifyInstance } from 'fastify'
import { lifecycle } from '../../index.ts'

export async function build (work = () => sleep(1000, 'done'), graceMs = 5000): Promise<FastifyInstance> {
  // Fastify itself would refuse everything from the first moment of closing on.
  const app = Fastify({ return503OnClosing: false })
  await app.register(lifecycle, { delayMs: 0, graceMs })

  app.get('/work', work)
  app.get('/phase', async () => app.lifecycle.phase)
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) {
  const app = await build()
  console.log(await app.listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
  process.once('SIGTERM', () => { app.close().then(() => process.exit(0), () => process.exit(1)) })
}
