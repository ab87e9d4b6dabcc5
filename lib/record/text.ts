import { oneLine } from '../one-line.ts'
import type { RecordedAttempt, RequestRecord } from './types.ts'
import { bytes, milliseconds } from '../words.ts'

/** A record for people: what became of it, why, and what was believed then. Plain text that harms no terminal, at most about a hundred columns wide but for what the explanation tells. */
export function textOf (record: RequestRecord): string {
  const { requestId, method, path, status, reason, kept, at, ms, version } = record
  return [
    `${requestId}: ${method ?? 'no request'}${path === null ? '' : ` ${path}`} -> ${status === 0 ? 'no answer' : status}${reason === null ? '' : ` ${reason}`}`,
    `${at}, took ${milliseconds(ms)}; recorded as ${kept}${version > 0 ? `; configuration version ${version}` : ''}`,
    '',
    ...wrapped(record.explanation, 100),
    ...pool(record),
    ...attempts(record.attempts),
    '',
    'When (ms after it was received)',
    `  ${Object.entries(record.timeline).flatMap(([name, value]) => value === null ? [] : [`${name} ${value}`]).join('  ')}`,
    ...moment(record),
    ''
  ].map(oneLine).join('\n')
}

function wrapped (text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + word.length + 1 > width) {
      lines.push(line)
      line = ''
    }
    line += line === '' ? word : ` ${word}`
  }
  return [...lines, line]
}

/** Columns as wide as their widest cell. */
function table (rows: ReadonlyArray<readonly string[]>): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  return rows.map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd())
}

function pool ({ pool: name, route, match, candidates, panic }: RequestRecord): string[] {
  const routed = route === null ? '' : `route ${route}${match?.by == null ? '' : `, matched by ${match.by}`}`
  if (candidates.length === 0) return routed === '' && name === null ? [] : ['', [name === null ? '' : `Pool ${name}`, routed].filter((part) => part !== '').join(' · ')]
  const rows = candidates.map(({ upstream, why, state, detail }) => [upstream, why, state ?? 'no breaker', detail])
  return ['', `Pool ${name}${routed === '' ? '' : ` (${routed})`}${panic ? ', in panic' : ''}`, ...table([['upstream', 'why', 'breaker', ''], ...rows])]
}

function attempts (made: readonly RecordedAttempt[]): string[] {
  if (made.length === 0) return []
  const rows = made.map(({ upstream, kind, outcome, reason, status, ms, begunAt, permit, error, noRetry, retryInMs }) => [
    upstream, kind, outcome ?? 'under way', reason ?? (status > 0 ? String(status) : '-'), `at ${begunAt}`, ms === null ? '-' : `${ms} ms`, permit === 'probe' ? 'probe' : '',
    [error ?? '', noRetry === null ? '' : `no retry: ${noRetry}`, retryInMs === null ? '' : `retried after ${retryInMs} ms`].filter((part) => part !== '').join('; ')
  ])
  return ['', 'Attempts', ...table([['upstream', 'kind', 'outcome', 'reason', 'begun', 'took', '', ''], ...rows])]
}

function moment ({ gate, readings, deadline }: RequestRecord): string[] {
  const parts = [
    ...gate === null ? [] : [`gate ${gate.inFlight} of ${gate.limit}`],
    ...readings === null ? [] : [`event loop ${milliseconds(readings.eventLoopDelayMs)} late, ${Math.round(100 * readings.eventLoopUtilization)} % busy`, `heap ${bytes(readings.heapUsedBytes)}`],
    ...deadline === null ? [] : [deadline.leftMs === null ? 'no time limit of the whole' : `${milliseconds(deadline.leftMs)} of ${milliseconds(deadline.totalMs)} left`]
  ]
  return parts.length === 0 ? [] : ['', 'Then', `  ${parts.join(' · ')}`]
}
