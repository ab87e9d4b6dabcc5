/** The options of the event journal and of the webhook. */
import { Type, type Static } from 'typebox'
import { ms, object, section, tokenPattern } from './schema-kit.ts'

export const WebhookOptions = object({
  url: Type.String({ minLength: 1, description: 'http or https. Never shown: such addresses are secrets themselves.' }),
  types: Type.Array(Type.String({ minLength: 1 }), { default: [], description: 'Types of events that are sent, like breaker_transition; those of your own plugins have a dot in their name. None: all.' }),
  timeoutMs: ms(5000, 'Time for one delivery.'),
  maxQueued: Type.Integer({ minimum: 1, maximum: 100000, default: 1000, description: 'Events that wait for their delivery; the oldest are dropped, and it is told how many.' }),
  headers: Type.Record(Type.String({ pattern: tokenPattern }), Type.String({ maxLength: 8192, pattern: '^[\\t\\x20-\\x7e\\x80-\\xff]*$' }), { default: {}, additionalProperties: false, description: 'Fields of each delivery, such as authorization. Their values are never shown.' })
}, { description: 'Sends events to an address, as JSON with POST, in batches.' })

export const EventsOptions = section('The journal of what happened: GET /events.', {
  capacity: Type.Integer({ minimum: 1, maximum: 1000000, default: 1000, description: 'Events that are kept; the oldest make room.' }),
  webhook: Type.Optional(WebhookOptions)
})

export type WebhookOptions = Static<typeof WebhookOptions>
export type EventsOptions = Static<typeof EventsOptions>
