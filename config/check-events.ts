import type { Report } from './checks.ts'
import { keyPath } from './path.ts'
import { objectOf } from './values.ts'

/** They are the connection's, or ours. */
const own = new Set(['host', 'content-length', 'content-type', 'transfer-encoding', 'connection', 'upgrade', 'te', 'trailer', 'expect', 'keep-alive'])

export const checkEvents = (events: Record<string, unknown>, report: Report): void => {
  const webhook = events['webhook']
  if (webhook !== undefined) checkWebhook(objectOf(webhook), 'events.webhook', report)
}

export const checkWebhook = ({ url, headers }: Record<string, unknown>, path: string, report: Report): void => {
  if (typeof url === 'string') {
    const parsed = URL.canParse(url) ? new URL(url) : null
    if (parsed === null || (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')) report(`${path}.url`, 'must be an http or https URL (the value is not shown)')
    else if (parsed.username !== '' || parsed.password !== '') report(`${path}.url`, 'must not have credentials: use headers (the value is not shown)')
  }
  for (const name of Object.keys(objectOf(headers))) {
    if (own.has(name.toLowerCase())) report(keyPath(`${path}.headers`, name), 'is made by the delivery itself')
  }
}
