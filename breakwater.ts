/**
 * The whole gateway as one plugin: `app.register(breakwater, config)`. The order is the way of a request; nothing else decides it.
 */
import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { diffConfig } from './config/diff.ts'
import { parseConfig } from './config/parse.ts'
import { redactConfig } from './config/redact.ts'
import type { Config } from './config/schema.ts'
import accessLog from './plugins/access-log.ts'
import adminListener from './plugins/admin-listener.ts'
import breakerRegistry from './plugins/breaker-registry.ts'
import configuration from './plugins/configuration.ts'
import discovery from './plugins/discovery.ts'
import edge from './plugins/edge.ts'
import eventJournal from './plugins/event-journal.ts'
import eventWebhook from './plugins/event-webhook.ts'
import flightRecorder from './plugins/flight-recorder.ts'
import forwarder from './plugins/forwarder.ts'
import healthPolling from './plugins/health-polling.ts'
import history from './plugins/history.ts'
import lifecycle from './plugins/lifecycle.ts'
import listener from './plugins/listener.ts'
import loadShedding from './plugins/load-shedding.ts'
import rateLimits from './plugins/rate-limits.ts'
import metricsPlugin from './plugins/metrics.ts'
import observation from './plugins/observation.ts'
import readiness from './plugins/readiness.ts'
import routing from './plugins/routing.ts'
import tracingPlugin from './plugins/tracing.ts'
import upstreamPools from './plugins/upstream-pools.ts'
import adminRoutes from './routes/admin/index.ts'
import probes from './routes/probes.ts'
import proxy from './routes/proxy.ts'

/** What Fastify itself reads of the options of `register`. */
interface RegisterOptions { prefix?: string, logLevel?: string, logSerializers?: object }

/**
 * A whole configuration, as `parseConfig` gives it, or what a file would say: then the defaults are filled in and everything is
 * checked.
 */
export type BreakwaterOptions = Config | { pools: object, [section: string]: unknown }

/** Throws a ConfigError with everything that is wrong. */
const breakwater: FastifyPluginAsync<BreakwaterOptions & RegisterOptions> = async (app, options) => {
  const { prefix: _prefix, logLevel: _logLevel, logSerializers: _logSerializers, ...given } = options
  const config = parseConfig(given, 'the options of breakwater')
  const { server, admin, metrics, tracing, shedding, recorder, events, pools, routes } = config
  await app.register(edge, server)
  await app.register(observation)
  await app.register(accessLog)
  await app.register(lifecycle, server.shutdown)
  await app.register(loadShedding, shedding)
  await app.register(upstreamPools, { pools })
  await app.register(breakerRegistry)
  await app.register(healthPolling)
  await app.register(discovery)
  await app.register(rateLimits)
  await app.register(routing, { routes })
  await app.register(configuration, { config, parse: parseConfig, diff: diffConfig })
  await app.register(listener, { pollMs: config.reload.pollMs })
  await app.register(eventJournal, { capacity: events.capacity })
  await app.register(eventWebhook, events.webhook ?? {})
  await app.register(history)
  await app.register(flightRecorder, recorder)
  await app.register(readiness, { pools: () => app.routeTable.pools() })
  await app.register(forwarder, { maxBodyBytes: () => app.configuration.current.server.maxBodyBytes })
  if (tracing.enabled) await app.register(tracingPlugin, tracing)
  if (metrics.enabled) await app.register(metricsPlugin, metrics)
  if (server.probes) await app.register(probes)
  await app.register(proxy)
  if (admin.enabled) {
    await app.register(adminListener, {
      host: admin.host,
      port: admin.port,
      token: admin.token,
      routes: (instance, { loopbackOnly }) =>
        instance.register(adminRoutes, { source: app, token: admin.token, loopbackOnly, config: () => redactConfig(app.configuration.current) })
    })
  }
}

export default fp(breakwater, { name: 'breakwater', fastify: '5.x' })
