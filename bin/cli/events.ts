import { listOf, objectOf } from '../../config/values.ts'
import { jsonLine, oneLine } from '../../lib/one-line.ts'
import { adminOf, ask, type Admin } from '../admin-client.ts'
import { adminOptions, exitCodes, jsonOption, UsageError, type Command } from './command.ts'
import { followEvents, type JournalEvent } from './event-source.ts'

const pageSize = 1000

const bare = /^[\w.:/[\]@%+-]+$/

/** Three digits of a fraction: a ratio with seventeen of them says no more. --json has them all. */
function rounded (_name: string, value: unknown): unknown {
  if (typeof value !== 'number') return value
  return Math.abs(value) < 1 ? Number(value.toPrecision(3)) : Math.round(value * 1000) / 1000
}

function valueText (value: unknown): string {
  if (typeof value === 'string' && bare.test(value)) return value
  return oneLine(JSON.stringify(value, rounded) ?? 'null')
}

/** `17 2026-01-02T03:04:05.678Z breaker_transition pool=shop upstream=127.0.0.1:9001 from=closed to=open`. */
export const eventLine = ({ seq, at, type, ...fields }: JournalEvent): string =>
  [String(seq), oneLine(at), oneLine(type), ...Object.entries(fields).map(([name, value]) => `${oneLine(name)}=${valueText(value)}`)].join(' ')

/** All that is kept after `since`, page by page. */
async function kept (admin: Admin, since: number, signal: AbortSignal, each: (event: JournalEvent) => void, trouble: (text: string) => void): Promise<void> {
  for (let after = since; ;) {
    const { content } = await ask(admin, `events?since=${after}&limit=${pageSize}`, { signal })
    const page = objectOf(content)
    const events = listOf(page['events']) as JournalEvent[]
    const first = Number(page['firstSeq'])
    if (after > 0 && events.length > 0 && first > after + 1) trouble(`events ${after + 1} to ${first - 1} are no longer kept`)
    for (const event of events) each(event)
    if (events.length < pageSize) return
    after = (events.at(-1) as JournalEvent).seq
  }
}

/** `breakwater events`. */
export const eventsCommand: Command = {
  name: 'events',
  summary: 'tell what happened lately, a line for each event, oldest first',
  operands: [],
  options: {
    follow: { short: 'f', text: 'go on with each event as it comes, until Ctrl-C; a lost connection is made again' },
    since: { value: 'N', text: 'only what came after event N' },
    type: { value: 'TYPE', repeat: true, text: 'only events of this type, such as breaker_transition; repeatable' },
    ...jsonOption,
    ...adminOptions
  },
  notes: exitCodes,
  async run (given, terminal) {
    const admin = adminOf(given, terminal.env)
    const since = given.text('since') ?? '0'
    if (!/^\d{1,15}$/.test(since)) throw new UsageError(`--since must be the number of an event, not "${since}"`)
    const types = new Set(given.list('type'))
    const show = (event: JournalEvent): void => {
      if (types.size > 0 && !types.has(event.type)) return
      terminal.out(given.flag('json') ? jsonLine(event) : eventLine(event))
    }
    const trouble = (text: string): void => terminal.complain(`breakwater events: ${oneLine(text)}`)
    if (given.flag('follow')) await followEvents(admin, { since: Number(since), stopped: terminal.stopped, onEvent: show, onTrouble: trouble })
    else await kept(admin, Number(since), terminal.stopped, show, trouble)
    return 0
  }
}
