import { Registry, type Metric, type OpenMetricsContentType } from 'prom-client'

interface Content { name: string, values: unknown[] }
type Source = Metric & { get: () => Promise<Content> }

/**
 * All metrics of a registry as OpenMetrics. prom-client takes `_total` off the names of counters for good when it writes this format,
 * and a registry has one format for all who ask: so each writing is of copies, in a registry of its own.
 */
export function openMetrics (registry: Registry): Promise<string> {
  const copies = new Registry<OpenMetricsContentType>()
  copies.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  for (const metric of registry.getMetricsAsArray() as unknown as Source[]) {
    copies.registerMetric(copyOf(metric, metric as unknown as { name: string, type: string }) as never)
  }
  return copies.metrics()
}

function copyOf (metric: Source, { name, type }: { name: string, type: string }): object {
  const family = type === 'counter' ? name.replace(/_total$/, '') : name
  return { name: family, type, get: async () => ({ ...await metric.get(), name: family }) }
}
