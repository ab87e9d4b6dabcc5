/**
 * Distributed traces: a server span for each exchange and a client span for each attempt, by the API of OpenTelemetry alone. Where the
 * process has registered no SDK by the time the app is ready, nothing is observed and nothing is spent. Decorates `app.tracing`.
 */
import { createRequire } from 'node:module'
import { context, propagation, ROOT_CONTEXT, SpanKind, trace, type Context, type Span, type Tracer, type TracerProvider } from '@opentelemetry/api'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { TracingOptions } from '../config/schema-tracing.ts'
import type { Exchange } from '../lib/exchange.ts'
import type {} from './edge.ts'
import type { ExchangeEnd, ObservedAttempt, Observer } from './observation.ts'
import { attemptAttributes, attemptName, endAttempt, endExchange, exchangeAttributes, exchangeName } from './tracing/spans.ts'

/** Those of the configuration, but for `enabled`: who wants no traces does not register them. */
export type TracingPluginOptions = Partial<Omit<TracingOptions, 'enabled'>>

export interface Tracing {
  /** An SDK was registered when the app was ready. */
  readonly active: boolean
  /** What the request's server span is current in, for spans of your own; null: it is not traced. */
  contextOf (request: FastifyRequest): Context | null
}

declare module 'fastify' {
  interface FastifyInstance {
    tracing: Tracing
  }
}

const { version } = createRequire(import.meta.url)('fastify-breakwater/package.json') as { version: string }
const name = 'fastify-breakwater'

const kContext = Symbol('breakwater.traceContext')
interface TracedExchange extends Exchange { [kContext]?: Context }
const kSpan = Symbol('breakwater.span')
interface TracedAttempt extends ObservedAttempt { [kSpan]?: Span }

/** The SDK's tracer; null: none is registered. The API's own stand-in tells that by what it delegates to. */
function registeredTracer (): Tracer | null {
  const provider = trace.getTracerProvider() as TracerProvider & { getDelegateTracer?: (name: string, version: string) => Tracer | undefined }
  return provider.getDelegateTracer === undefined ? provider.getTracer(name, version) : provider.getDelegateTracer(name, version) ?? null
}

class SpanKeeper implements Observer {
  readonly #app: FastifyInstance
  readonly #tracer: Tracer
  readonly #continues: TracingOptions['continueFrom']
  /** The fields of the propagator, which are sent in the place of the client's. */
  readonly #fields: readonly string[]

  constructor (app: FastifyInstance, tracer: Tracer, continues: TracingOptions['continueFrom']) {
    this.#app = app
    this.#tracer = tracer
    this.#continues = continues
    this.#fields = propagation.fields()
  }

  exchangeBegun (request: FastifyRequest): void {
    const { raw, exchange } = request
    const peer = this.#app.edge.peerOf(raw)
    const parent = this.#parentOf(request, this.#continues === 'anybody' || peer.trusted)
    const span = this.#tracer.startSpan(exchangeName(raw.method, null), { kind: SpanKind.SERVER, attributes: exchangeAttributes(request, peer) }, parent)
    const { traceId } = span.spanContext()
    const tagged: TracedExchange = exchange
    tagged[kContext] = trace.setSpan(parent, span)
    if (trace.isSpanContextValid(span.spanContext())) exchange.traceId = traceId
  }

  /** A span that is current already is somebody's who traces the server: ours is its child. */
  #parentOf ({ raw }: FastifyRequest, believed: boolean): Context {
    const current = context.active()
    if (trace.getSpan(current) !== undefined) return current
    return believed ? propagation.extract(ROOT_CONTEXT, raw.headers) : ROOT_CONTEXT
  }

  exchangeEnded ({ raw, exchange }: FastifyRequest, _reply: FastifyReply, end: ExchangeEnd): void {
    const span = spanOf(exchange)
    if (span === undefined) return
    endExchange(span, exchange, raw.method, end)
  }

  attemptBegun (exchange: Exchange | null, attempt: ObservedAttempt): void {
    // A copy is another request: whoever gets it is told of a span of its own, never of the client's.
    const traced: TracedExchange | null = exchange ?? attempt.copyOf
    const parent = traced?.[kContext]
    if (traced === null || parent === undefined) return
    const recorded = trace.getSpan(parent)?.isRecording() === true
    // Of a trace that nobody keeps only the ids are wanted.
    const span = this.#tracer.startSpan(attemptName(attempt), { kind: SpanKind.CLIENT, ...recorded && { attributes: attemptAttributes(traced, attempt) } }, parent)
    ;(attempt as TracedAttempt)[kSpan] = span
    const carrier: Record<string, string> = {}
    propagation.inject(trace.setSpan(parent, span), carrier)
    attempt.replaced = { names: this.#fields, fields: Object.entries(carrier).flat() }
  }

  attemptEnded (_exchange: Exchange | null, attempt: ObservedAttempt): void {
    const span = (attempt as TracedAttempt)[kSpan]
    if (span !== undefined) endAttempt(span, attempt)
  }
}

function spanOf (exchange: TracedExchange): Span | undefined {
  const own = exchange[kContext]
  return own === undefined ? undefined : trace.getSpan(own)
}

const tracing: FastifyPluginAsync<TracingPluginOptions> = async (app, { continueFrom = 'anybody' }) => {
  let stop: (() => void) | null = null
  app.decorate('tracing', {
    get active () { return stop !== null },
    contextOf: ({ exchange }: FastifyRequest) => (exchange as TracedExchange)[kContext] ?? null
  })
  app.addHook('onReady', async () => {
    const tracer = registeredTracer()
    if (tracer !== null) stop = app.observers.add(new SpanKeeper(app, tracer, continueFrom))
  })
  app.addHook('onClose', async () => { stop?.() })
}

export default fp(tracing, { name: 'breakwater-tracing', fastify: '5.x', dependencies: ['breakwater-observation'] })
