import type { Gateway } from '../../support/gateway.ts'
import { readExposition, valuesOf, type ReadFamily } from '../../support/exposition.ts'

/** What is exposed now, in both formats read strictly. */
export async function scrape ({ app }: Pick<Gateway, 'app'>, format: 'text' | 'openmetrics' = 'text'): Promise<Map<string, ReadFamily>> {
  return readExposition((await app.edgeMetrics.expose(format)).text, format)
}

/** The values of one name, by their labels; those that are 0 are left out. */
export async function counted (gateway: Pick<Gateway, 'app'>, name: string): Promise<Record<string, number>> {
  return Object.fromEntries(Object.entries(valuesOf(await scrape(gateway), name)).filter(([, value]) => value !== 0))
}
