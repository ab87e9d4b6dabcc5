/** The access log alone: one line for each request, whatever became of it. */
// #region
import Fastify, { type FastifyInstance } from 'fastify'
import { accessLog, edge, observation } from '../../index.ts'

export async function build (write = (line: object): void => { process.stdout.write(`${JSON.stringify(line)}\n`) }): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(edge)
  await app.register(observation)
  await app.register(accessLog, { write })

  app.get('/hello', async () => 'hello')
  app.get('/ping', { config: { accessLog: false } }, async () => 'not logged')
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build()).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
