import type { ConfigDiff } from '../config/diff.ts'
import type { Problem } from '../config/error.ts'
import type { Config } from '../config/schema.ts'
import { isObject, listOf, objectOf } from '../config/values.ts'
import { failureText, request } from './admin-client.ts'
import type { InFlight } from './diff-text.ts'

/** What a running proxy says to a configuration. */
export type Verdict =
  | { kind: 'valid', diff: ConfigDiff, inFlight: InFlight, /** The one in force, without its secrets; null where it was not told. */ running: unknown }
  | { kind: 'invalid', errors: Problem[] }
  | { kind: 'refused', why: string }

const isText = (value: unknown): boolean => typeof value === 'string'
const hasTexts = (value: unknown, ...keys: string[]): value is Record<string, unknown> => isObject(value) && keys.every((key) => isText(value[key]))
const isName = (value: unknown): boolean => hasTexts(value, 'pool', 'upstream')
const hasOptions = (value: unknown): boolean => isObject(value) && Array.isArray(value['options']) && value['options'].every(isText)

/** What the lists of a difference hold, as far as it is printed. */
const lists: readonly [part: string, key: string, holds: (member: unknown) => boolean][] = [
  ['pools', 'added', isText],
  ['pools', 'removed', isText],
  ['pools', 'changed', (each) => hasTexts(each, 'pool') && hasOptions(each)],
  ['upstreams', 'added', isName],
  ['upstreams', 'removed', isName],
  ['upstreams', 'changed', (each) => isName(each) && hasOptions(each)],
  ['routes', 'added', isText],
  ['routes', 'removed', isText],
  ['routes', 'changed', (each) => hasTexts(each, 'route') && hasOptions(each)]
]

/** Another version, or another program, may answer anything. */
export function isDiff (value: unknown): value is ConfigDiff & { impact?: unknown } {
  const holds = (list: unknown, test: (member: unknown) => boolean): boolean => Array.isArray(list) && list.every(test)
  return isObject(value) && typeof value['same'] === 'boolean' && ['shedding', 'other', 'needsRestart'].every((key) => holds(value[key], isText)) &&
    lists.every(([part, key, test]) => holds(objectOf(value[part])[key], test))
}

/** The exchanges at the upstreams that a difference touches. */
export const inFlightOf = ({ impact }: { impact?: unknown }): InFlight =>
  listOf(objectOf(impact)['upstreams']).filter((each) => isName(each) && typeof objectOf(each)['inFlight'] === 'number') as InFlight[number][]

export const isProblem = (value: unknown): value is Problem => isObject(value) && typeof value['path'] === 'string' && typeof value['message'] === 'string'

/**
 * Has a running proxy judge a configuration and tell what taking it would change. Nothing is changed. The configuration is sent
 * whole, with its secrets, to this address alone.
 * @param base where its admin routes are, like http://127.0.0.1:9090
 * @param token '' for none
 */
export async function askAdmin (base: string, token: string, config: Config, waitMs = 10_000): Promise<Verdict> {
  const admin = { base, token }
  try {
    const { status, content } = await request(admin, 'config/validate', { method: 'POST', body: config, waitMs })
    const said = objectOf(content)
    const errors = listOf(said['errors'])
    if (status === 422 && errors.length > 0 && errors.every(isProblem)) return { kind: 'invalid', errors }
    if (status !== 200) return { kind: 'refused', why: `it answers ${status}${typeof said['detail'] === 'string' ? `: ${said['detail']}` : ''}` }
    const { diff } = said
    if (said['valid'] !== true || !isDiff(diff)) return { kind: 'refused', why: 'it answers what no admin route of this version does' }
    const shown = await request(admin, 'config', { waitMs })
    return { kind: 'valid', diff, inFlight: inFlightOf(diff), running: shown.status === 200 ? shown.content : null }
  } catch (error) {
    return { kind: 'refused', why: `it cannot be reached: ${failureText(error)}` }
  }
}
