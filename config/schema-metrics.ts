/** The options of metrics. */
import { Type, type Static } from 'typebox'
import { flag, section } from './schema-kit.ts'

const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

export const MetricsOptions = section('Metrics for Prometheus, at GET /metrics of the admin listener.', {
  enabled: flag(true, 'Count and time.'),
  exemplars: flag(true, 'Give duration buckets and counters of errors the id of a request that they counted, and of its trace. Only in OpenMetrics.'),
  process: flag(true, 'Also of the process: CPU, memory, descriptors, garbage collection. Read when they are asked for.'),
  durationBuckets: Type.Array(Type.Number({ exclusiveMinimum: 0, maximum: 86400 }), {
    minItems: 1, maxItems: 50, default: bounds, description: 'Upper bounds of the buckets of durations, in seconds, each above the one before.'
  })
})

export type MetricsOptions = Static<typeof MetricsOptions>
