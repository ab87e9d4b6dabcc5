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

const ours = (name: string, features: string, envOf: (site: Site) => Record<string, string>): Peer => ({
  name,
  features: `everything on: access log, breaker, health checks, gate, header hygiene${features}`,
  missing: () => existsSync(app) ? null : 'app.js is not built',
  version: () => `node ${process.versions.node}`,
  prepare: site => ({
    program: process.execPath,
    args: [cli(), 'start', '-o', '-l', 'info', '-a', '127.0.0.1', '-p', String(site.port), app],
    env: { BREAKWATER_ADMIN_PORT: '0', ...envOf(site) }
  })
})

export const breakwater = ours('breakwater', '', ({ upstreams }) => ({ BREAKWATER_UPSTREAMS: urls(upstreams).join(',') }))

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
