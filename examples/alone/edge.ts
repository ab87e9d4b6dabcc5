/** The edge alone: each request has an id and the client's address, and a peer's word on them counts only where the peer is trusted. */
// #region
import Fastify, { type FastifyInstance } from 'fastify'
import { edge } from '../../index.ts'

export async function build (trustedProxies: string[] = []): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(edge, { trustedProxies })
  app.get('/', async ({ exchange }) => ({ requestId: exchange.requestId, clientIp: exchange.clientIp }))
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build(['127.0.0.1'])).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
