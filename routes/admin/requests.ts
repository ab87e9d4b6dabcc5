import type { FastifyInstance } from 'fastify'
import type { ListedRecord, RecordQuery } from '../../plugins/flight-recorder.ts'
import { read } from './define.ts'
import { AdminError } from './replies.ts'
import { RequestList, RequestParams, RequestsQuery, RequestView } from './schemas-requests.ts'
import { inTurns } from './turns.ts'

/** Each has all members of its pool. */
const recordsAtOnce = 5

/** GET /requests, /requests/:requestId */
export function requestRoutes (app: FastifyInstance, source: FastifyInstance): void {
  const { recorder } = source

  read(app, '/requests', { summary: 'Requests that were recorded, the newest first', querystring: RequestsQuery, reply: RequestList }, async (request) => {
    const { since, ...query } = request.query
    const found = await inTurns(recorder.listing({ ...query, ...since !== undefined && { since: timeOf(since) } } as RecordQuery), recordsAtOnce)
    return { requests: found.map(row), recorder: recorder.view() }
  })

  read(app, '/requests/:requestId', {
    summary: 'Why a request ended as it did; as readable text with Accept: text/plain', params: RequestParams, reply: RequestView, produces: ['application/json', 'text/plain']
  }, async (request, reply) => {
    const { requestId } = request.params
    const record = recorder.find(requestId)
    if (record === undefined) throw new AdminError(404, `there is no record of request "${requestId}": ${recorder.whyMissing(requestId)}`)
    if (!prefersText(request.headers.accept)) return record
    // Sent past the schema's serializer, which would write it as JSON.
    return reply.type('text/plain; charset=utf-8').serializer((text: unknown) => text as string).send(recorder.text(record))
  })
}

/** @throws AdminError for a time that no calendar has */
function timeOf (text: string): number {
  const [year = 0, month = 0, day = 0] = text.slice(0, 10).split('-').map(Number)
  const time = Date.parse(text)
  // A day that its month does not have becomes one of the next.
  if (Number.isNaN(time) || new Date(Date.UTC(year, month - 1, day)).getUTCDate() !== day) throw new AdminError(400, 'querystring.since is a time that there is not')
  return time
}

function row ({ requestId, at, kept, method, path, route, pool, upstream, status, reason, ms, explanation, attempts, alike }: ListedRecord): object {
  return { requestId, at, kept, method, path, route, pool, upstream, status, reason, ms, explanation, attempts: attempts.length, ...alike !== undefined && { alike } }
}

/** Text is asked for by name, and before JSON. */
function prefersText (accept = ''): boolean {
  const types = accept.split(',').map((each) => (each.split(';')[0] ?? '').trim().toLowerCase())
  const text = types.indexOf('text/plain')
  const json = types.indexOf('application/json')
  return text !== -1 && (json === -1 || text < json)
}
