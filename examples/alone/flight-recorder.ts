/** The flight recorder alone: an app explains what became of a request. */
// #region
import Fastify, { type FastifyInstance } from 'fastify'
import { edge, flightRecorder, observation } from '../../index.ts'

export async function build (): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(edge)
  await app.register(observation)
  await app.register(flightRecorder, { sampleRatio: 1 })

  app.get('/hello', async () => 'hello')
  app.get('/why/:id', { config: { accessLog: false } }, async (request) => {
    const { id } = request.params as { id: string }
    const record = app.recorder.find(id)
    return record === undefined ? `no record: ${app.recorder.whyMissing(id)}` : app.recorder.text(record)
  })
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build()).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
