import type { TestContext } from 'node:test'
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import type { RouteOptions } from '../../../config/schema.ts'
import breakerRegistry from '../../../plugins/breaker-registry.ts'
import eventJournal from '../../../plugins/event-journal.ts'
import healthPolling from '../../../plugins/health-polling.ts'
import loadShedding from '../../../plugins/load-shedding.ts'
import readiness from '../../../plugins/readiness.ts'
import routing from '../../../plugins/routing.ts'
import upstreamPools, { type PoolInput } from '../../../plugins/upstream-pools.ts'
import adminRoutes, { type AdminRoutesOptions } from '../../../routes/admin/index.ts'

export const routes: RouteOptions[] = [
  { path: '/status', pool: 'shop' },
  { path: '/api/*', pool: 'shop', stripPrefix: '/api' },
  { path: '/users/:id', pool: 'users', methods: ['GET'] },
  { path: '/*', pool: 'users', host: 'users.example' }
]

/** Nobody listens there, and nobody is asked: the checks are off. */
export const pools: Record<string, PoolInput> = {
  shop: { upstreams: ['http://127.0.0.1:9', { url: 'http://[::1]:9', weight: 0 }], health: { enabled: false } },
  users: { upstreams: ['unix:/run/a%2Fb/users.sock'], health: { enabled: false } }
}

/** An app with all that the admin routes show, without the routes. */
export async function source (t: TestContext, given: Record<string, PoolInput> = pools, options: FastifyServerOptions = {}): Promise<FastifyInstance> {
  const app = Fastify(options) as unknown as FastifyInstance
  t.after(() => app.close())
  await app.register(loadShedding)
  await app.register(upstreamPools, { pools: given })
  await app.register(breakerRegistry)
  await app.register(healthPolling)
  await app.register(eventJournal)
  await app.register(readiness)
  await app.register(routing, { routes: given === pools ? routes : [] })
  for (const { name, upstreams, options: { breaker } } of app.pools.list()) for (const { id } of upstreams) app.breakers.get(name, id, breaker)
  return app
}

/** The same with the routes under /admin, without a token unless one is given. */
export async function withAdmin (t: TestContext, options: AdminRoutesOptions = {}): Promise<FastifyInstance> {
  const app = await source(t)
  await app.register(adminRoutes, { prefix: '/admin', loopbackOnly: true, config: { admin: { token: '[redacted]' } }, ...options })
  await app.ready()
  return app
}

/** A write, as a client makes it. */
export const post = (app: FastifyInstance, url: string, body: object | string = {}) =>
  app.inject({ method: 'POST', url, headers: { 'content-type': 'application/json' }, payload: typeof body === 'string' ? body : JSON.stringify(body) })
