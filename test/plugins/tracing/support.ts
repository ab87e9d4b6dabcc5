import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor, type ReadableSpan } from '@opentelemetry/sdk-trace-node'
import type { Gateway } from '../../support/gateway.ts'
import { until } from '../../support/wait.ts'

export const exporter = new InMemorySpanExporter()

/** The SDK of this process, which may have one. */
export function registerSdk (): void {
  new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register()
}

/** The spans that have ended since the last call, in the order of their beginnings, once the exchange and its attempts are over. */
export async function spansOf (gateway: Gateway, count: number): Promise<ReadableSpan[]> {
  await until(() => exporter.getFinishedSpans().length >= count, { what: `${count} spans` })
  await gateway.idle()
  const spans = exporter.getFinishedSpans().toSorted((one, other) => one.startTime[0] - other.startTime[0] || one.startTime[1] - other.startTime[1] || one.kind - other.kind)
  exporter.reset()
  return spans
}

export const clientTrace = '4bf92f3577b34da6a3ce929d0e0e4736'
export const traceparent = (sampled = true): string => `00-${clientTrace}-00f067aa0ba902b7-0${Number(sampled)}`

/** The traceparent by which a span is told to the next server. */
export const parentOf = (span: ReadableSpan | undefined): string => `00-${span?.spanContext().traceId}-${span?.spanContext().spanId}-01`
