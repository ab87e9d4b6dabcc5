/**
 * Metrics for Prometheus: what this app has counted, and what it believes, read when somebody asks. Whatever it is decorated with when
 * it is ready has its metrics; the rest has none. Decorates `app.edgeMetrics`.
 */
import { createRequire } from 'node:module'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { Registry } from 'prom-client'
import { completeMetrics } from '../config/complete.ts'
import type { MetricsOptions } from '../config/schema-metrics.ts'
import type {} from './breaker-registry.ts'
import { BreakerMetrics } from './metrics/breakers.ts'
import { certificateFamilies, ConfigMetrics, DiscoveryMetrics } from './metrics/changes.ts'
import { Expositions, type ExpositionFormat } from './metrics/exposition.ts'
import { Family, register } from './metrics/family.ts'
import { gateFamilies } from './metrics/gate.ts'
import { forwardingFamilies, poolFamilies } from './metrics/pools.ts'
import { ProcessMetrics } from './metrics/process.ts'
import { RequestMetrics } from './metrics/requests.ts'
import { UpstreamMetrics } from './metrics/upstreams.ts'
import type {} from './observation.ts'

/** Those of the configuration, but for `enabled`: who wants no metrics does not register them. */
export type MetricsPluginOptions = Partial<Omit<MetricsOptions, 'enabled'>>

export type { ExpositionFormat }

export interface EdgeMetrics {
  /** Metrics of your own may be put in: they are exported with ours. Leave its content type alone. */
  readonly registry: Registry
  /** All metrics as they are now. */
  expose (format: ExpositionFormat): Promise<{ contentType: string, text: string }>
}

declare module 'fastify' {
  interface FastifyInstance {
    edgeMetrics: EdgeMetrics
  }
}

const { version } = createRequire(import.meta.url)('fastify-breakwater/package.json') as { version: string }

/** Follows what the app has; gives what ends that. */
function follow (app: FastifyInstance, { durationBuckets, exemplars, process: ofProcess }: MetricsOptions, registry: Registry): Array<() => void> {
  const stops: Array<() => void> = []
  const requests = new RequestMetrics(app, durationBuckets, exemplars)
  stops.push(app.observers.add(requests))
  register(registry, requests.families())
  if (app.hasDecorator('pools')) {
    const upstreams = new UpstreamMetrics(app, durationBuckets, exemplars)
    stops.push(app.observers.add(upstreams), app.pools.on('event', (event) => { upstreams.poolEvent(event) }))
    register(registry, [...upstreams.families(), ...poolFamilies(app)])
    if (app.hasDecorator('forwarding')) register(registry, forwardingFamilies(app))
  }
  if (app.hasDecorator('breakers')) {
    const breakers = new BreakerMetrics(app)
    stops.push(app.breakers.on('transition', (transition) => { breakers.transition(transition) }))
    register(registry, breakers.families())
  }
  if (app.hasDecorator('shedding')) register(registry, gateFamilies(app))
  if (app.hasDecorator('configuration')) {
    const config = new ConfigMetrics(app)
    stops.push(app.configuration.on('event', (event) => { config.event(event) }))
    register(registry, config.families())
  }
  if (app.hasDecorator('discovery')) {
    const discovery = new DiscoveryMetrics(app)
    stops.push(app.discovery.on('change', (event) => { discovery.event(event) }))
    register(registry, discovery.families())
  }
  if (app.hasDecorator('listener')) register(registry, certificateFamilies(app))
  if (ofProcess) {
    const ours = new ProcessMetrics()
    stops.push(() => { ours.close() })
    register(registry, ours.families())
  }
  return stops
}

const metrics: FastifyPluginAsync<MetricsPluginOptions> = async (app, given) => {
  const options = completeMetrics(given)
  const registry = new Registry()
  let stops: Array<() => void> = []
  register(registry, [new Family('gauge', 'edge_build_info', 'The version of Breakwater and of Node.js.', () => [{ labels: { version, node: process.versions.node }, value: 1 }])])

  const expositions = { text: new Expositions(registry, 'text'), openmetrics: new Expositions(registry, 'openmetrics') }
  app.decorate('edgeMetrics', {
    registry,
    async expose (format: ExpositionFormat) {
      const contentType = format === 'text' ? Registry.PROMETHEUS_CONTENT_TYPE : Registry.OPENMETRICS_CONTENT_TYPE
      return { contentType, text: await expositions[format].expose() }
    }
  })

  // What was registered after us is there by then. Nothing that is counted can come earlier.
  app.addHook('onReady', async () => { stops = follow(app, options, registry) })
  app.addHook('onClose', async () => { for (const stop of stops) stop() })
}

export default fp(metrics, { name: 'breakwater-metrics', fastify: '5.x', dependencies: ['breakwater-observation'] })
