import type { ConfigDiff } from '../config/diff.ts'
import type { Problem } from '../config/error.ts'
import type { Config } from '../config/schema.ts'
import { isObject, listOf, objectOf } from '../config/values.ts'
import type { InFlight } from './diff-text.ts'

/** What a running proxy says to a configuration. */
export type Verdict =
  | { kind: 'valid', diff: ConfigDiff, inFlight: InFlight, /** The one in force, without its secrets; null where it was not told. */ running: unknown }
  | { kind: 'invalid', errors: Problem[] }
  | { kind: 'refused', why: string }

/** Why there was no answer, in words; never the request, which holds secrets. */
function failure (error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error'
  if (error.name === 'TimeoutError') return 'no answer in time'
  const { cause } = error
  if (!(cause instanceof Error)) return error.message
  return 'code' in cause ? String(cause.code) : cause.message
}

/** Where its admin routes are, the admin token or '', and how long each answer may take, in ms. */
interface Admin {
  base: string
  token: string
  waitMs: number
}

async function ask ({ base, token, waitMs }: Admin, path: string, body?: Config): Promise<{ status: number, content: unknown }> {
  const headers: Record<string, string> = token === '' ? {} : { authorization: `Bearer ${token}` }
  const response = await fetch(new URL(path, base.endsWith('/') ? base : `${base}/`), {
    // What is sent goes to this address and to no other.
    redirect: 'manual',
    signal: AbortSignal.timeout(waitMs),
    ...body === undefined ? { headers } : { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) }
  })
  const text = await response.text()
  try {
    return { status: response.status, content: JSON.parse(text) as unknown }
  } catch {
    return { status: response.status, content: null }
  }
}

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
function isDiff (value: unknown): value is ConfigDiff & { impact?: unknown } {
  const holds = (list: unknown, test: (member: unknown) => boolean): boolean => Array.isArray(list) && list.every(test)
  return isObject(value) && typeof value['same'] === 'boolean' && ['shedding', 'other', 'needsRestart'].every((key) => holds(value[key], isText)) &&
    lists.every(([part, key, test]) => holds(objectOf(value[part])[key], test))
}

const isProblem = (value: unknown): value is Problem => isObject(value) && typeof value['path'] === 'string' && typeof value['message'] === 'string'

/**
 * Has a running proxy judge a configuration and tell what taking it would change. Nothing is changed. The configuration is sent
 * whole, with its secrets, to this address alone.
 * @param base where its admin routes are, like http://127.0.0.1:9090
 * @param token '' for none
 */
export async function askAdmin (base: string, token: string, config: Config, waitMs = 10_000): Promise<Verdict> {
  const admin = { base, token, waitMs }
  try {
    const { status, content } = await ask(admin, 'config/validate', config)
    const said = objectOf(content)
    const errors = listOf(said['errors'])
    if (status === 422 && errors.length > 0 && errors.every(isProblem)) return { kind: 'invalid', errors }
    if (status !== 200) return { kind: 'refused', why: `it answers ${status}${typeof said['detail'] === 'string' ? `: ${said['detail']}` : ''}` }
    const { diff } = said
    if (said['valid'] !== true || !isDiff(diff)) return { kind: 'refused', why: 'it answers what no admin route of this version does' }
    const shown = await ask(admin, 'config')
    const inFlight = listOf(objectOf(diff.impact)['upstreams']).filter((each) => isName(each) && typeof objectOf(each)['inFlight'] === 'number') as InFlight[number][]
    return { kind: 'valid', diff, inFlight, running: shown.status === 200 ? shown.content : null }
  } catch (error) {
    return { kind: 'refused', why: `it cannot be reached: ${failure(error)}` }
  }
}
