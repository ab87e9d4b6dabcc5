import type { FastifyInstance } from 'fastify'
import type { RouteOptions } from '../../config/schema.ts'
import { problem, sendProblem } from '../../lib/http/problem.ts'
import { parseTarget } from '../../lib/http/target.ts'
import { forwardedPath } from '../../lib/route/rewrite.ts'
import { RouteTable } from '../../lib/route/table.ts'
import { read } from './define.ts'
import { AdminError } from './replies.ts'
import { MatchQuery, MatchView, RouteList } from './schemas.ts'

/** GET /routes, /routes/match: which route a request would take, asked without sending it. */
export function routingRoutes (app: FastifyInstance, routes: readonly RouteOptions[]): void {
  const table = new RouteTable(routes)

  read(app, '/routes', { summary: 'The configured routes', reply: RouteList }, async () => ({ routes }))

  read(app, '/routes/match', { summary: 'Which route a request would take', querystring: MatchQuery, reply: MatchView }, async (request, reply) => {
    const { method, host, path } = request.query
    const target = parseTarget(path, method)
    if (target === null) throw new AdminError(400, 'querystring.path would be refused with 400 before any route is looked for')
    if (method === 'TRACE' || method === 'CONNECT') throw new AdminError(400, `querystring.method: ${method} is refused before any route is looked for`)
    const match = table.match(method, target.authority ?? host, target.path)
    if (match === null) return sendProblem(reply, problem('no_route', request.id))
    const { route, by } = match
    const forwarded = forwardedPath(target.path, route.stripPrefix, route.prefix, '') + target.search
    return { route: route.path, pool: route.pool, by, forwardedPath: forwarded, options: route }
  })
}
