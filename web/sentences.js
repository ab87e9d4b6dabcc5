/** Events of the journal in words. */
import { duration, plural, words } from './format.js'

const subject = ({ pool, upstream }) => [pool, upstream].filter((each) => typeof each === 'string').join(' / ')

export const ejectionCause = ({ trigger, failures, total }) => trigger === 'ratio' ? `${failures} of ${total} failed` : `${plural(failures ?? 0, 'failure')} in a row`

const because = (reason) => typeof reason === 'string' && reason !== '' ? `: ${reason}` : ''

const sentences = {
  breaker_transition: (event) => ({
    tone: event.to === 'closed' ? 'ok' : event.to === 'open' && event.mode !== 'observe' ? 'out' : 'warn',
    text: `Breaker: ${String(event.explanation ?? words(event.cause)).replace(/^[A-Z]/, (letter) => letter.toLowerCase())}`
  }),
  health_changed: ({ healthy, cause }) => ({ tone: healthy ? 'ok' : 'out', text: `${healthy ? 'Healthy' : 'Unhealthy'}, ${words(cause)}` }),
  health_removal_held: ({ cause }) => ({ tone: 'warn', text: `Held in though its checks fail, ${words(cause)}` }),
  upstream_draining: ({ reason, until }) => ({ tone: 'quiet', text: `Draining${until === null ? '' : ` until ${new Date(until).toLocaleTimeString('en-GB')}`}${because(reason)}` }),
  upstream_ready: ({ cause, reason }) => ({ tone: 'ok', text: `Back in rotation (${words(cause)})${because(reason)}` }),
  upstream_ejected: (event) => ({ tone: event.enforced === false ? 'warn' : 'out', text: `${event.enforced === false ? 'Would be ejected' : 'Ejected'} for ${duration(event.ms ?? 0)}, ${ejectionCause(event)}` }),
  ejection_held: (event) => ({ tone: 'warn', text: `Not ejected, ${event.held === 'last' ? 'it is the last one' : 'too many of its pool are'}; ${ejectionCause(event)}` }),
  pool_panic: ({ panic, usable, members }) => ({ tone: panic ? 'out' : 'ok', text: panic ? `Panic: ${usable} of ${members} usable, all are used` : 'Panic is over' }),
  shed_begun: ({ reason, inFlight, maxInFlight }) => ({ tone: 'out', text: `Requests are shed, ${words(reason)}: ${inFlight} of ${maxInFlight} places taken` }),
  shed_ended: ({ total, reasons = {}, peakPerSecond, lastedMs }) => ({ tone: 'ok', text: `No request is shed any more: ${total} were within ${duration(lastedMs ?? 0)} (${Object.entries(reasons).map(([reason, count]) => `${words(reason)} ${count}`).join(', ')}), ${peakPerSecond} in a second at most` }),
  members_changed: ({ added = [], removed = [] }) => ({ tone: 'quiet', text: ['Members changed', added.length > 0 && `in: ${added.join(', ')}`, removed.length > 0 && `out: ${removed.join(', ')}`].filter(Boolean).join('; ') }),
  config_reloaded: ({ version, cause }) => ({ tone: 'quiet', text: `Configuration ${version} in force (${words(cause)})` }),
  config_rejected: ({ errors = [] }) => ({ tone: 'out', text: `Configuration refused: ${errors.map(({ path, message }) => `${path} ${message}`.trim()).join('; ')}` }),
  admin_write: ({ action, state, ttlMs, reason }) => ({ tone: 'quiet', text: `Operator: ${words(action)}${state === undefined ? '' : ` ${state}`}${ttlMs === undefined ? '' : ` for ${duration(ttlMs)}`}${because(reason)}` })
}

/** What is not known here is told by its type and its short fields. */
function generic ({ type, seq: _seq, at: _at, pool: _pool, upstream: _upstream, target: _target, ...rest }) {
  const fields = Object.entries(rest).filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value)).map(([name, value]) => `${name} ${value}`)
  return { tone: /fail|refus|reject|expire|inco|_cut|spent/.test(type) ? 'warn' : 'quiet', text: [words(type), ...fields].join(', ') }
}

export function tell (event) {
  const { tone, text } = (Object.hasOwn(sentences, event.type) ? sentences[event.type] : generic)(event)
  const requests = Array.isArray(event.requests) ? event.requests.filter((id) => typeof id === 'string') : []
  return { tone, text, subject: subject(event), requests }
}
