import { isObject, objectOf } from '../../config/values.ts'
import { jsonLine, oneLine } from '../../lib/one-line.ts'
import { adminOf, ask } from '../admin-client.ts'
import { adminOptions, exitCodes, jsonOption, UsageError, type Command, type Given, type Terminal } from './command.ts'
import { durationOf } from './duration.ts'

const reasonOption = { reason: { value: 'TEXT', text: 'why, for the journal' } } as const
const ttlOption = { ttl: { value: 'TIME', text: 'for how long, such as 90s or 5m' } } as const
const target = [{ name: 'POOL' }, { name: 'UPSTREAM' }]
const notes = `UPSTREAM is its id: host:port, or the path of its socket.\n\n${exitCodes}`

function reasonOf (given: Given): { reason?: string } {
  const reason = given.text('reason')
  if (reason !== undefined && (reason === '' || reason.length > 256)) throw new UsageError('--reason must have 1 to 256 characters')
  return reason === undefined ? {} : { reason }
}

function ttlOf (given: Given): { ttlMs?: number } {
  const ttl = given.text('ttl')
  return ttl === undefined ? {} : { ttlMs: durationOf(ttl, '--ttl') }
}

/** Sends a write, and tells its answer: JSON, or a line. */
async function send (given: Given, terminal: Terminal, path: string, body: object, lineOf: (view: Record<string, unknown>) => string): Promise<number> {
  const { content } = await ask(adminOf(given, terminal.env), path, { method: 'POST', body, signal: terminal.stopped })
  const [pool = '', upstream = ''] = given.operands
  terminal.out(given.flag('json') ? jsonLine(content) : oneLine(`${upstream} of pool ${pool}: ${lineOf(objectOf(content))}`))
  return 0
}

const place = ({ operands: [pool = '', upstream = ''] }: Given): [string, string] => [encodeURIComponent(pool), encodeURIComponent(upstream)]

const breakerLine = ({ state, force, reopenAt }: Record<string, unknown>): string =>
  `breaker ${String(state)}${isObject(force) ? `, forced until ${String(force['until'])}` : typeof reopenAt === 'string' ? `, reopens at ${reopenAt}` : ''}`

export const forceCommand: Command = {
  name: 'force',
  summary: 'hold an upstream\'s breaker open or closed for a time, or end that',
  operands: [...target, { name: 'STATE', choices: ['open', 'closed', 'auto'] }],
  options: { ...ttlOption, ...reasonOption, ...jsonOption, ...adminOptions },
  notes: `open and closed need --ttl; auto ends a force.\n${notes}`,
  run: async (given, terminal) => {
    const state = given.operands[2] as string
    const body = { state, ...ttlOf(given), ...reasonOf(given) }
    if (state !== 'auto' && body.ttlMs === undefined) throw new UsageError(`${state} needs --ttl, such as --ttl 5m`)
    if (state === 'auto' && body.ttlMs !== undefined) throw new UsageError('auto takes no --ttl')
    const [pool, upstream] = place(given)
    return await send(given, terminal, `breakers/${pool}/${upstream}/force`, body, breakerLine)
  }
}

export const resetCommand: Command = {
  name: 'reset',
  summary: 'close an upstream\'s breaker with a clean record, and end a force',
  operands: target,
  options: { ...reasonOption, ...jsonOption, ...adminOptions },
  notes,
  run: async (given, terminal) => {
    const [pool, upstream] = place(given)
    return await send(given, terminal, `breakers/${pool}/${upstream}/reset`, reasonOf(given), breakerLine)
  }
}

export const drainCommand: Command = {
  name: 'drain',
  summary: 'take an upstream out of rotation; exchanges at it go on',
  operands: target,
  options: { ...ttlOption, ...reasonOption, ...jsonOption, ...adminOptions },
  notes: `Without --ttl until \`breakwater ready\`.\n${notes}`,
  run: async (given, terminal) => {
    const [pool, upstream] = place(given)
    return await send(given, terminal, `pools/${pool}/upstreams/${upstream}/drain`, { ...ttlOf(given), ...reasonOf(given) }, ({ drain, inFlight }) => {
      const until = objectOf(drain)['until']
      return `draining${typeof until === 'string' ? ` until ${until}` : ''}, ${String(inFlight)} in flight`
    })
  }
}

export const readyCommand: Command = {
  name: 'ready',
  summary: 'take a drained upstream back into rotation',
  operands: target,
  options: { ...reasonOption, ...jsonOption, ...adminOptions },
  notes,
  run: async (given, terminal) => {
    const [pool, upstream] = place(given)
    return await send(given, terminal, `pools/${pool}/upstreams/${upstream}/ready`, reasonOf(given), ({ healthy }) => `in rotation, ${healthy === true ? 'healthy' : 'not healthy'}`)
  }
}

export const healthCheckCommand: Command = {
  name: 'health-check',
  summary: 'check an upstream now; the result counts',
  operands: target,
  options: { ...reasonOption, ...jsonOption, ...adminOptions },
  notes: `Exit code 1 also where the check fails. ${notes}`,
  run: async (given, terminal) => {
    const [pool, upstream] = place(given)
    let passed: unknown = null
    const code = await send(given, terminal, `health/${pool}/${upstream}/check`, reasonOf(given), (view) => {
      const check = objectOf(view['check'])
      passed = check['passed']
      return `${passed === true ? 'passed' : passed === false ? 'failed' : 'says nothing'} (${String(check['cause'])}) after ${String(check['ms'])} ms; ${view['healthy'] === true ? 'healthy' : 'not healthy'}`
    })
    return passed === false ? 1 : code
  }
}
