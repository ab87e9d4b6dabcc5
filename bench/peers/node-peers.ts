import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { built, packageRoot } from '../children.ts'
import { largeConfig } from './large-config.ts'
import { urls, type Peer, type Site } from './peer.ts'

const versionOfPackage = (name: string): string => {
  const file = join(packageRoot(), 'node_modules', name, 'package.json')
  return `${name} ${(JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version}`
}

const app = built('app.js')
const cli = (): string => join(packageRoot(), 'node_modules', 'fastify-cli', 'cli.js')

const ours = (name: string, features: string, envOf: (site: Site) => Record<string, string>, nodeArgs: readonly string[] = []): Peer => ({
  name,
  features: `everything on: access log, metrics, breaker, health checks, gate, header hygiene${features}`,
  missing: () => existsSync(app) ? null : 'app.js is not built',
  version: () => `node ${process.versions.node}`,
  prepare: site => ({
    program: process.execPath,
    args: [...nodeArgs, cli(), 'start', '-o', '-l', 'info', '-a', '127.0.0.1', '-p', String(site.port), app],
    env: { BREAKWATER_ADMIN_PORT: '0', ...envOf(site) }
  })
})

const upstreamsOnly = ({ upstreams }: Site): Record<string, string> => ({ BREAKWATER_UPSTREAMS: urls(upstreams).join(',') })

export const breakwater = ours('breakwater', '', upstreamsOnly)

const without = (section: string): Peer => ({
  ...ours(`breakwater-no-${section}`, `; no ${section}`, ({ upstreams, folder }) => {
    const file = join(folder, 'breakwater.json')
    writeFileSync(file, JSON.stringify({ [section]: { enabled: false }, pools: { upstreams: { upstreams: urls(upstreams).map(url => ({ url })) } } }))
    return { BREAKWATER_CONFIG: file }
  }),
  asked: true
})

/** What metrics, and records, cost is the difference. */
export const breakwaterNoMetrics = without('metrics')
export const breakwaterNoRecorder = without('recorder')

const traced = (name: string, features: string, share: number): Peer => ({
  ...ours(name, features, (site) => ({ ...upstreamsOnly(site), TRACE_SHARE: String(share) }), ['--import', built('bench/peers/trace-sdk.js')]),
  asked: true
})

/** With an SDK of OpenTelemetry, whose spans go nowhere: what an exporter costs is its own. */
export const breakwaterTraced = traced('breakwater-traced', '; every trace recorded', 1)
export const breakwaterSampled = traced('breakwater-sampled', '; one trace in a hundred recorded', 0.01)

/** The same with a large configuration, which must not cost what it does not use. */
export const breakwaterLarge: Peer = {
  ...ours('breakwater-large', '; 1,000 routes, 100 upstreams', ({ upstreams, folder }) => {
    const file = join(folder, 'breakwater.json')
    writeFileSync(file, JSON.stringify(largeConfig(upstreams)))
    return { BREAKWATER_CONFIG: file }
  }),
  upstreams: 100
}

/** A proxy of bench/peers that runs in Node: `file PORT URL...`. */
const script = (name: string, features: string, version: () => string): Peer => ({
  name,
  features,
  missing: () => null,
  version,
  prepare: ({ port, upstreams }) => ({ program: process.execPath, args: [built(`bench/peers/${name}.js`), String(port), ...urls(upstreams)] })
})

export const replyFrom = script('reply-from', 'bare: round-robin closure, no log, no limits', () => versionOfPackage('@fastify/reply-from'))
export const nodeUndici = script('node-undici', 'bare: node:http, undici Pool.dispatch, round robin', () => versionOfPackage('undici'))
export const httpProxy = script('http-proxy', 'bare: keep-alive agent, round robin', () => versionOfPackage('http-proxy'))
