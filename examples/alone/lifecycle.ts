/** The way down alone: SIGTERM lets requests finish within the grace, and the exit code tells whether they did. */
// #region
import { setTimeout as sleep } from 'node:timers/promises'
import Fastify, { type FastifyInstance } from 'fastify'
import { lifecycle } from '../../index.ts'

export async function build (workMs = 1000, graceMs = 5000): Promise<FastifyInstance> {
  // Fastify itself would refuse everything from the first moment of closing on.
  const app = Fastify({ return503OnClosing: false })
  await app.register(lifecycle, { delayMs: 0, graceMs })

  app.get('/work', async () => {
    await sleep(workMs)
    return 'done'
  })
  app.get('/phase', async () => app.lifecycle.phase)
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) {
  const app = await build()
  await app.listen({ port: 8080 })
  process.once('SIGTERM', () => { app.close().then(() => process.exit(0), () => process.exit(1)) })
}
