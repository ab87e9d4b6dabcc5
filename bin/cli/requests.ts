import { objectOf } from '../../config/values.ts'
import { jsonLine, oneLine } from '../../lib/one-line.ts'
import type { Kept } from '../../lib/record/types.ts'
import { AdminFailure, adminOf, ask } from '../admin-client.ts'
import { adminOptions, exitCodes, jsonOption, UsageError, type Command, type Given } from './command.ts'
import { durationOf, durationText } from './duration.ts'

const kinds: readonly Kept[] = ['refused', 'failed', 'retried', 'slow', 'sample']
const maxLimit = 1000

/** `breakwater requests`. */
export const requestsCommand: Command = {
  name: 'requests',
  summary: 'tell which requests were refused or failed lately, and why; one of each kind, with how many there are',
  operands: [],
  options: {
    kept: { value: 'WHY', choices: kinds, repeat: true, text: 'those that were recorded for this; repeatable (refused and failed)' },
    for: { value: 'REASON', text: 'only for this reason, such as breaker_open' },
    pool: { value: 'POOL', text: 'only of this pool' },
    upstream: { value: 'UPSTREAM', text: 'only where this upstream had an attempt, or could not be picked' },
    since: { value: 'TIME', text: 'only of so long ago at most, such as 15m' },
    each: { text: 'every one, not one of each kind' },
    limit: { value: 'N', text: 'how many at most, the newest first (20)' },
    ...jsonOption,
    ...adminOptions
  },
  notes: exitCodes,
  async run (given, terminal) {
    const admin = adminOf(given, terminal.env)
    const { content } = await ask(admin, `requests?${queryOf(given, terminal.now())}`, { signal: terminal.stopped })
    const requests = objectOf(content)['requests']
    if (!Array.isArray(requests)) throw new AdminFailure(3, 'the answer holds no requests, which no proxy gives')
    const found = requests.map(objectOf)
    if (given.flag('json')) for (const each of found) terminal.out(jsonLine(each))
    else if (found.length > 0) for (const each of found) terminal.out(...linesOf(each, terminal.now()))
    else terminal.out(given.list('kept').length > 0 ? 'none is recorded' : 'none that was refused or failed is recorded')
    return 0
  }
}

/** @throws UsageError */
function queryOf (given: Given, now: number): URLSearchParams {
  const kept = given.list('kept')
  const limit = given.text('limit') ?? '20'
  if (!/^\d{1,4}$/.test(limit) || Number(limit) < 1 || Number(limit) > maxLimit) throw new UsageError(`--limit must be from 1 to ${maxLimit}, not "${limit}"`)
  const query = new URLSearchParams({ limit, distinct: String(!given.flag('each')) })
  for (const each of kept.length > 0 ? kept : ['refused', 'failed']) query.append('kept', each)
  for (const [option, name] of [['for', 'reason'], ['pool', 'pool'], ['upstream', 'upstream']] as const) {
    const value = given.text(option)
    if (value !== undefined) query.set(name, value)
  }
  const since = given.text('since')
  if (since !== undefined) query.set('since', new Date(now - durationOf(since, '--since')).toISOString())
  return query
}

const textOf = (value: unknown): string => typeof value === 'string' ? oneLine(value) : ''

/** What it was in one line, why in a second one. */
function linesOf (record: Record<string, unknown>, now: number): string[] {
  const { kept, reason, pool, method, path, status, requestId, at, explanation } = record
  const { count } = objectOf(record['alike'])
  const many = typeof count === 'number' && count > 1
  const what = [textOf(kept), textOf(reason) || (kept === 'failed' ? 'by the upstream' : ''), typeof status !== 'number' ? '' : status === 0 ? 'no answer' : String(status)].filter((part) => part !== '').join(' ')
  const where = textOf(pool) === '' ? '' : `, pool ${textOf(pool)}`
  const msAgo = now - Date.parse(String(at))
  const ago = Number.isNaN(msAgo) ? '' : ` ${durationText(msAgo)} ago`
  return [
    `${what}${where}${many ? `, ${count} alike; the latest${ago}` : `;${ago}`}: ${textOf(requestId)} ${textOf(method) || '-'} ${textOf(path) || '-'}`,
    ...textOf(explanation) === '' ? [] : [`  ${textOf(explanation)}`]
  ]
}
