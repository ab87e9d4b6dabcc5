import { checkStickyCookies } from './check-balance.ts'
import { checkServerTls } from './check-certificates.ts'
import { checkMetrics } from './check-metrics.ts'
import { checkEvents } from './check-events.ts'
import { checkPools } from './check-pools.ts'
import { checkRoutes } from './check-routes.ts'
import { checkAdmin, checkServer, checkShedding } from './check-server.ts'
import { maxProblems, type Problem } from './error.ts'
import { objectOf } from './values.ts'

/** Notes a problem; checks go on. */
export type Report = (path: string, message: string) => void

/** Thrown to leave the checks: there are more problems than are shown. */
const enough = Symbol('enough')

const check = (value: unknown, report: Report): void => {
  const { server, admin, metrics, shedding, events, pools, routes } = objectOf(value)
  checkServer(objectOf(server), report)
  checkServerTls(objectOf(server), report)
  checkAdmin(objectOf(admin), report)
  checkMetrics(objectOf(metrics), report)
  checkShedding(objectOf(shedding), report)
  checkEvents(objectOf(events), report)
  checkPools(objectOf(pools), report, objectOf(server))
  checkStickyCookies(objectOf(pools), routes, report)
  checkRoutes(routes, objectOf(pools), report, objectOf(server))
}

/** Judges what a schema cannot: URLs, names that refer to others, files, and options that contradict each other. */
export const checkMeaning = (value: unknown): Problem[] => {
  const problems: Problem[] = []
  try {
    check(value, (path, message) => {
      problems.push({ path, message })
      if (problems.length > maxProblems) throw enough
    })
  } catch (error) {
    if (error !== enough) throw error
  }
  return problems
}
