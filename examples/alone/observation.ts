/** Observers alone: told what becomes of requests and of the attempts at upstreams. */
// #region
import Fastify, { type FastifyInstance } from 'fastify'
import { edge, observation } from '../../index.ts'

export async function build (write = (text: string): void => { process.stdout.write(`${text}\n`) }): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(edge)
  await app.register(observation)
  app.observers.add({
    exchangeEnded: ({ exchange, method }, _reply, { status }) => { write(`${method} ${status} ${exchange.reason ?? 'well'}`) }
  })

  app.get('/hello', async () => 'hello')
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build()).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
