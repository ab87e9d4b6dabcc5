/** Traces: an SDK of OpenTelemetry is registered, and sends them to a collector by OTLP. */
// #region
import Fastify, { type FastifyInstance } from 'fastify'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, NodeTracerProvider, ParentBasedSampler, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace-node'
import { breakwater } from '../index.ts'

export async function build (upstreams = ['http://127.0.0.1:9001'], collector = 'http://127.0.0.1:4318/v1/traces', share = 0.1): Promise<FastifyInstance> {
  // Before the app is ready: that is when Breakwater looks whether there is one.
  const provider = new NodeTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'edge' }),
    // What the client has decided holds; of what begins here a tenth is recorded.
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: collector }))]
  })
  provider.register()

  const app = Fastify()
  await app.register(breakwater, { admin: { enabled: false }, pools: { shop: { upstreams: upstreams.map((url) => ({ url })), health: { enabled: false } } } })
  // What has not been sent yet goes out before the process ends.
  app.addHook('onClose', async () => { await provider.shutdown() })
  return app
}
// #endregion

if (process.argv[1] === import.meta.filename) console.log(await (await build()).listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) }))
