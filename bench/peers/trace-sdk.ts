/** Loaded before a peer: an SDK of OpenTelemetry whose spans go nowhere. TRACE_SHARE: the share of traces that begin here which is recorded. */
import { BatchSpanProcessor, NodeTracerProvider, ParentBasedSampler, TraceIdRatioBasedSampler, type SpanExporter } from '@opentelemetry/sdk-trace-node'

const nowhere: SpanExporter = {
  export: (_spans, done) => { done({ code: 0 }) },
  shutdown: async () => {}
}

new NodeTracerProvider({
  sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(Number(process.env['TRACE_SHARE'] ?? 1)) }),
  spanProcessors: [new BatchSpanProcessor(nowhere)]
}).register()
