import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type {} from '../../plugins/event-webhook.ts'
import { read } from './define.ts'
import { EventStreams } from './event-streams.ts'
import { AdminError } from './replies.ts'
import { EventList, EventsQuery, StreamHeaders, StreamQuery } from './schemas.ts'

const streamFields = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' }

/** GET /events, /events/stream */
export function eventRoutes (app: FastifyInstance, source: FastifyInstance): void {
  const streams = new EventStreams(source.events, {
    onDrop: () => { source.log.warn('an event stream was dropped: its client does not read') }
  })
  app.addHook('preClose', async () => { streams.close() })

  read(app, '/events', { summary: 'What happened lately, oldest first', querystring: EventsQuery, reply: EventList }, async (request) => {
    const webhook = source.hasDecorator('eventWebhook') ? { webhook: source.eventWebhook.view() } : {}
    return { ...webhook, run: source.events.run, ...source.events.since(request.query.since, request.query.limit) }
  })

  read(app, '/events/stream', {
    summary: 'The same, and then every event as it comes (server-sent events)',
    querystring: StreamQuery,
    headers: StreamHeaders,
    produces: [streamFields['content-type']],
    reply: Type.String({ description: 'text/event-stream: `id` is the number of the event, `data` the event as JSON.' })
  }, (request, reply) => {
    if (request.method === 'HEAD') return reply.headers(streamFields).send()
    if (streams.refusal !== null) throw new AdminError(503, streams.refusal)
    const lastEventId = request.headers['last-event-id']
    const since = lastEventId === undefined ? request.query.since ?? 0 : Number(lastEventId)
    reply.hijack()
    streams.open(reply.raw, { ...ownFields(reply.getHeaders()), ...streamFields }, since)
    return reply
  })
}

/** What hooks have set before, such as the request id; fields for other origins are left out. */
function ownFields (fields: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !name.startsWith('access-control-')).map(([name, value]) => [name, String(value)]))
}
