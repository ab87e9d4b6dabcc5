import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { built, packageRoot } from '../children.ts'
import { urls, type Peer } from './peer.ts'

const versionOfPackage = (name: string): string => {
  const file = join(packageRoot(), 'node_modules', name, 'package.json')
  return `${name} ${(JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version}`
}

const app = built('app.js')
const cli = (): string => join(packageRoot(), 'node_modules', 'fastify-cli', 'cli.js')

export const breakwater: Peer = {
  name: 'breakwater',
  features: 'everything on: access log, breaker, health checks, gate, header hygiene',
  missing: () => existsSync(app) ? null : 'app.js is not built',
  version: () => `node ${process.versions.node}`,
  prepare: ({ port, upstreams }) => ({
    program: process.execPath,
    args: [cli(), 'start', '-o', '-l', 'info', '-a', '127.0.0.1', '-p', String(port), app],
    env: { BREAKWATER_UPSTREAMS: urls(upstreams).join(','), BREAKWATER_ADMIN_PORT: '0' }
  })
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
