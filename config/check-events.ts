import { eventTypes } from '../lib/event-types.ts'
import type { Report } from './checks.ts'
import { indexPath, keyPath } from './path.ts'
import { nearest } from './suggest.ts'
import { given, objectOf } from './values.ts'

/** They are the connection's, or ours. */
const own = new Set(['host', 'content-length', 'content-type', 'transfer-encoding', 'connection', 'upgrade', 'te', 'trailer', 'expect', 'keep-alive'])

export const checkEvents = (events: Record<string, unknown>, report: Report): void => {
  const webhook = events['webhook']
  if (webhook !== undefined) checkWebhook(objectOf(webhook), 'events.webhook', report)
}

const knownTypes = Object.keys(eventTypes)

/** A plugin of somebody else's names its events with a dot, so that what has none can be told from a slip of the pen. */
const checkType = (type: unknown, path: string, report: Report): void => {
  if (typeof type !== 'string' || type === '' || type.includes('.') || knownTypes.includes(type)) return
  const meant = nearest(type, knownTypes)
  report(path, `is no type of event, got ${given(type, '')}; ${meant === null ? '' : `did you mean ${JSON.stringify(meant)}? `}Known: ${knownTypes.join(', ')}, and those of your own plugins, which have a dot`)
}

export const checkWebhook = ({ url, headers, types }: Record<string, unknown>, path: string, report: Report): void => {
  if (typeof url === 'string') {
    const parsed = URL.canParse(url) ? new URL(url) : null
    if (parsed === null || (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')) report(`${path}.url`, 'must be an http or https URL (the value is not shown)')
    else if (parsed.username !== '' || parsed.password !== '') report(`${path}.url`, 'must not have credentials: use headers (the value is not shown)')
  }
  if (Array.isArray(types)) for (const [i, type] of types.entries()) checkType(type, indexPath(`${path}.types`, i), report)
  for (const name of Object.keys(objectOf(headers))) {
    if (own.has(name.toLowerCase())) report(keyPath(`${path}.headers`, name), 'is made by the delivery itself')
  }
}
