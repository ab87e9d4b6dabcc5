import Fastify from 'fastify'
import breakwater from '../breakwater.ts'
import adminRoutes from '../routes/admin/index.ts'

/** What `GET /openapi.json` answers on the admin listener of a whole gateway, as a page. */
export async function openApiPage (): Promise<string> {
  const app = Fastify()
  // Nobody is asked: the checks are off, and nothing listens.
  await app.register(breakwater, { admin: { enabled: false }, pools: { shop: { upstreams: [{ url: 'http://127.0.0.1:9001' }], health: { enabled: false } } } })
  const admin = Fastify()
  try {
    await app.ready()
    await admin.register(adminRoutes, { source: app, loopbackOnly: true, config: () => ({}) })
    const { body } = await admin.inject({ url: '/openapi.json', headers: { host: 'localhost' } })
    return `${JSON.stringify(JSON.parse(body), null, 2)}\n`
  } finally {
    await admin.close()
    await app.close()
  }
}
