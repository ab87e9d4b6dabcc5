/** The options of the flight recorder. */
import { Type, type Static } from 'typebox'
import { flag, msOrNone, ratio, section } from './schema-kit.ts'

export const RecorderOptions = section('The flight recorder: why a request was refused, failed, was retried or slow, kept for GET /requests.', {
  enabled: flag(true, 'Keep records.'),
  maxBytes: Type.Integer({ minimum: 65536, maximum: 1073741824, default: 8388608, description: 'Memory that records may take, in bytes; the oldest make room.' }),
  slowMs: msOrNone(1000, 'A request that takes at least so long is recorded. A WebSocket is judged by its handshake. 0: none is for that.'),
  sampleRatio: ratio(0.01, 'Share of the other requests that are recorded too.')
})

export type RecorderOptions = Static<typeof RecorderOptions>
