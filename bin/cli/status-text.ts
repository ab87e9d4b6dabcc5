import { oneLine } from '../../lib/one-line.ts'
import { durationText } from './duration.ts'
import type { Status, UpstreamStatus } from './status-read.ts'
import { columns } from './text.ts'

const codes = { red: 31, green: 32, yellow: 33, bold: 1 } as const

const paintedAs = (state: string): keyof typeof codes => state === 'up' ? 'green' : state === 'open' || state === 'unhealthy' || state === 'ejected' ? 'red' : 'yellow'

function breakerText (breaker: UpstreamStatus['breaker'], now: number): string {
  if (breaker === null) return 'none'
  const { state, mode, forced, reopenAt, total, failures } = breaker
  const left = reopenAt === null ? NaN : Date.parse(reopenAt) - now
  const next = state !== 'open' ? '' : left > 0 ? `, ${forced ? 'ends' : 'probes'} in ${durationText(left)}` : ', probes with the next request'
  return `${oneLine(state)}${forced ? ' (forced)' : ''}${mode === 'observe' ? ' (observe)' : ''}${next}${state === 'closed' ? ` ${failures}/${total}` : ''}`
}

const sinceText = (since: string | null, now: number): string => since === null ? '' : durationText(now - Date.parse(since))

/** The status as a table for people. The words say all; colours only help. */
export function statusLines (status: Status, now: number, colors: boolean): string[] {
  const paint = (text: string, color: keyof typeof codes): string => colors ? `\u001b[${codes[color]}m${text}\u001b[0m` : text
  const lines = [`ready   ${status.ready ? paint('yes', 'green') : `${paint('no', 'red')}${status.why === '' ? '' : `: ${oneLine(status.why)}`}`}`]
  if (status.gate !== null) {
    const { inFlight, maxInFlight, pressure, over, shed } = status.gate
    const refused = Object.entries(shed).filter(([, count]) => count > 0).map(([reason, count]) => `${count} ${oneLine(reason)}`)
    lines.push(`gate    ${inFlight} of ${maxInFlight} in flight${pressure ? `, ${paint('under pressure', 'red')}${over.length > 0 ? ` (${over.join('; ')})` : ''}` : ''}${refused.length > 0 ? `; refused so far: ${refused.join(', ')}` : ''}`)
  }
  if (status.config !== null) {
    const { version, loadedAt, file, rejected } = status.config
    const later = rejected === null ? '' : paint(`; a later one was refused ${durationText(now - Date.parse(rejected.at))} ago (${rejected.errors} ${rejected.errors === 1 ? 'error' : 'errors'})`, 'red')
    lines.push(`config  version ${version}, ${file === null ? 'from no file' : oneLine(file)}, for ${durationText(now - Date.parse(loadedAt))}${later}`)
  }
  for (const { pool, balancer, panic, upstreams } of status.pools) {
    const rows = upstreams.map(({ upstream, state, cause, since, inFlight, limit, breaker }) =>
      [`  ${oneLine(upstream)}`, state, sinceText(since, now), limit > 0 ? `${inFlight}/${limit}` : String(inFlight), breakerText(breaker, now), oneLine(cause)])
    lines.push('', `pool ${oneLine(pool)}: ${oneLine(balancer)}${panic ? `, ${paint('in panic: all upstreams are used', 'red')}` : ''}`)
    if (rows.length === 0) lines.push('  it has no upstreams')
    else lines.push(...columns([['  UPSTREAM', 'STATE', 'FOR', 'IN FLIGHT', 'BREAKER', 'CAUSE'], ...rows], (cell, column, row) => row === 0 ? paint(cell, 'bold') : column === 1 ? paint(cell, paintedAs(cell)) : cell))
  }
  return lines
}
