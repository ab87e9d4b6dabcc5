import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TestContext } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import Fastify, { type FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { HealthOptions, UpstreamOptions } from '../../../config/schema.ts'
import healthPolling, { type CheckResult } from '../../../plugins/health-polling.ts'
import type { Upstream, UpstreamPool, UpstreamPools } from '../../../plugins/upstream-pools.ts'

export const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
export const status = (code: number, head = ''): string => `HTTP/1.1 ${code} Any\r\n${head}Content-Length: 0\r\n\r\n`

/** What a scripted upstream does with a request: the bytes that it sends, or anything. */
export type Answer = string | ((socket: Socket) => void)

/** A raw upstream. Answers request by request from `script`, whose last answer stays. */
export class RawUpstream {
  readonly server: Server
  readonly requests: string[] = []
  readonly sockets = new Set<Socket>()
  script: Answer[]
  accepted = 0

  constructor (...script: Answer[]) {
    this.script = script
    this.server = createServer((socket) => this.serve(socket))
  }

  serve (socket: Socket): void {
    this.accepted++
    this.sockets.add(socket)
    socket.on('close', () => this.sockets.delete(socket))
    socket.on('error', () => {})
    let head = ''
    socket.on('data', (chunk) => {
      head += chunk.toString('latin1')
      if (!head.includes('\r\n\r\n')) return
      this.requests.push(head)
      head = ''
      const answer = this.script.length > 1 ? this.script.shift()! : this.script[0]!
      if (typeof answer === 'string') socket.write(answer)
      else answer(socket)
    })
  }

  async listen (t: TestContext, path?: string): Promise<this> {
    await new Promise<void>((resolve) => path === undefined ? this.server.listen(0, '127.0.0.1', resolve) : this.server.listen(path, resolve))
    t.after(() => this.close())
    return this
  }

  get port (): number { return (this.server.address() as AddressInfo).port }
  get url (): string { return `http://127.0.0.1:${this.port}` }

  async close (): Promise<void> {
    for (const socket of this.sockets) socket.destroy()
    if (this.server.listening) await new Promise((resolve) => this.server.close(resolve))
  }
}

/** A fresh certificate for localhost and 127.0.0.1, signed by itself. */
const certificate = (t: TestContext): { cert: string, key: string } => {
  const folder = mkdtempSync(join(tmpdir(), 'health-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=localhost',
    '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-keyout', key, '-out', cert], { stdio: 'ignore' })
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') }
}

/** Serves an upstream over TLS. `broken` tells the handshakes that failed. */
export async function overTls (t: TestContext, upstream: RawUpstream): Promise<{ url: string, cert: string, broken: Error[] }> {
  const { cert, key } = certificate(t)
  const server = createTlsServer({ cert, key }, (socket) => upstream.serve(socket))
  const broken: Error[] = []
  server.on('tlsClientError', (error) => { broken.push(error) })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  t.after(() => upstream.close())
  t.after(() => { server.close() })
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, cert, broken }
}

const healthDefaults: HealthOptions = {
  enabled: true, type: 'http', path: '/healthz', intervalMs: 60000, timeoutMs: 1000, statuses: [200, 299], rise: 1, fall: 1, jitter: 0, initial: 'unhealthy',
  removal: { share: 0.5, seconds: 10 }
}

export interface PoolSpec {
  name?: string
  upstreams: Array<string | { url: string, connector?: object, id?: string, basePath?: string, socketPath?: string, host?: string, health?: UpstreamOptions['health'] }>
  health?: Partial<HealthOptions>
}

export const fakePool = ({ name = 'shop', upstreams, health = {} }: PoolSpec): UpstreamPool => ({
  name,
  options: Object.freeze({ health: Object.freeze({ ...healthDefaults, ...health }), connections: { max: 1, keepAliveMs: 4000 } }),
  upstreams: upstreams.map((spec) => {
    const { url, connector = {}, id, basePath = '', socketPath = null, health: own, host: asked } = typeof spec === 'string' ? { url: spec } : spec
    const { host, protocol, origin } = new URL(url)
    return {
      pool: name,
      id: id ?? host,
      url: { id: id ?? host, origin, basePath, socketPath, secure: protocol === 'https:' },
      host: asked ?? host,
      options: { url, weight: 1, priority: 0, ...(own !== undefined && { health: own }) },
      healthy: true,
      checked: false,
      http2: 'off' as const,
      connector: () => ({ ...(socketPath !== null && { socketPath }), ...connector })
    } as unknown as Upstream
  })
}) as unknown as UpstreamPool

export interface Harness {
  app: FastifyInstance
  logs: Array<Record<string, unknown>>
  /** The events and warnings of the log, by name. */
  logged: (msg: string) => Array<Record<string, unknown>>
  pools: UpstreamPool[]
  check: (index?: number) => Promise<CheckResult>
  /** The clock of the checks, as far as it has been moved on. */
  advance: (ms: number) => void
}

/** An app with the health plugin over a fake of the pools plugin. Not started: the polling begins with `app.ready()`. */
export async function harness (t: TestContext, ...specs: PoolSpec[]): Promise<Harness> {
  const logs: Array<Record<string, unknown>> = []
  const pools = specs.map(fakePool)
  const app = Fastify({ logger: { level: 'info', stream: { write: (line: string) => { logs.push(JSON.parse(line)) } } } })
  t.after(() => app.close())
  await app.register(fp(async (scope) => {
    scope.decorate('pools', { list: () => pools, get: (name: string) => pools.find((pool) => pool.name === name) } as unknown as UpstreamPools)
  }, { name: 'breakwater-upstream-pools' }))
  let ahead = 0
  await app.register(healthPolling, { random: () => 0.5, clock: () => performance.now() + ahead })
  return {
    app,
    logs,
    logged: (msg) => logs.filter((line) => line['msg'] === msg),
    pools,
    check: (index = 0) => app.health.checkNow(pools[0]!.name, pools[0]!.upstreams[index]!.id),
    advance: (ms) => { ahead += ms }
  }
}

/** Waits until `condition` holds. Throws after 10 s. */
export async function until (what: string, condition: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1000; tries++) {
    if (condition()) return
    await sleep(10)
  }
  throw new Error(`waited in vain until ${what}`)
}

/** Keeps the event loop busy. */
export const block = (ms: number): void => {
  const end = performance.now() + ms
  while (performance.now() < end);
}
