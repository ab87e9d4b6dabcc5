/**
 * The way down: readiness first, then the listener closes, accepted requests finish within the grace, connections without one are
 * closed at once; what is left at the end of the grace is cut and `app.close()` rejects. Decorates `app.lifecycle`.
 */
import type { ServerResponse } from 'node:http'
import type { ServerHttp2Session } from 'node:http2'
import { Socket } from 'node:net'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import type { ServerOptions } from '../config/schema-server.ts'
import { Emitter } from '../lib/emitter.ts'
import type { Exchange } from '../lib/exchange.ts'
import { retryAfter } from '../lib/http/problem.ts'
import { systemRandom, type Random } from '../lib/random.ts'
import { reset } from './connection.ts'
import type {} from './edge.ts'
import { socketOf } from './http2/client-request.ts'
import { cutSession } from './http2/cut.ts'
import { isHttp2 } from './http2/is-http2.ts'
import { refuse } from './refusal.ts'
import { tunnelOn } from './tunnels.ts'

export interface LifecycleOptions extends Partial<ServerOptions['shutdown']> {
  /** Where jitter comes from. Default: Math.random. */
  random?: Random
}

/** serving · stopping: still serving, readiness is off · draining: the listener is closed, accepted requests finish */
export type Phase = 'serving' | 'stopping' | 'draining'

/** Frozen. */
export type LifecycleEvent =
  | { readonly type: 'proxy_started', readonly at: string, readonly node: string }
  | { readonly type: 'shutdown_started', readonly at: string, readonly delayMs: number, readonly graceMs: number, readonly connections: number }
  /** The grace is over: so many connections were cut with an unanswered request or an open tunnel. */
  | { readonly type: 'shutdown_incomplete', readonly at: string, readonly open: number, readonly graceMs: number }

export interface Lifecycle {
  readonly phase: Phase
  /** Calls `fn` on each event until the returned function is called. A listener that throws is logged and harms nobody. */
  on (type: 'event', fn: (event: LifecycleEvent) => unknown): () => void
}

declare module 'fastify' {
  interface FastifyInstance {
    lifecycle: Lifecycle
  }
}

/** The grace ended before every accepted request was answered; the rest was cut. */
export class ShutdownIncompleteError extends Error {
  readonly code = 'BREAKWATER_SHUTDOWN_INCOMPLETE'
  constructor (open: number) { super(`${open} connections with an unanswered request or an open tunnel were cut at the end of the grace time`) }
}

const sweepMs = 50

/** A head of which nothing more came for so many sweeps (a second) will not be completed. */
const quietSweeps = 20

const kLatest = Symbol('breakwater.latestResponse')
const kBytes = Symbol('breakwater.bytesAtLastSweep')
const kQuiet = Symbol('breakwater.quietSweeps')
interface TrackedSocket extends Socket { [kLatest]?: ServerResponse, [kBytes]?: number, [kQuiet]?: number }

/** True while a request that was accepted on the connection has not been answered, or the connection is a tunnel. */
function owesAnswer (socket: TrackedSocket): boolean {
  if (tunnelOn(socket) !== null) return true
  const latest = socket[kLatest]
  return latest !== undefined && !latest.writableFinished
}

/**
 * True for a connection that may be closed: idle, never used, or with a part of a head of which nothing came for a while. That is
 * counted in sweeps: while our own loop stands still, nobody can be heard.
 */
function isIdle (socket: TrackedSocket): boolean {
  if (owesAnswer(socket)) return false
  // Answered while its body was coming: that connection is being closed already, gently.
  if (socket[kLatest] !== undefined) return socket[kLatest].req.complete
  const { bytesRead } = socket
  const quiet = bytesRead === (socket[kBytes] ?? 0) ? (socket[kQuiet] ?? 0) + 1 : 0
  socket[kBytes] = bytesRead
  socket[kQuiet] = quiet
  return bytesRead === 0 || quiet >= quietSweeps
}

/**
 * The connections of all apps. Whose answer is not whole when the process exits, by a second signal or a fault, is reset like one that is cut:
 * an orderly end would make a whole answer of a part where the connection's end is the body's.
 */
const everywhere = new Set<Set<TrackedSocket>>()

function resetUnanswered (): void {
  for (const sockets of everywhere) for (const socket of sockets) if (tunnelOn(socket) === null && owesAnswer(socket)) reset(socket)
}

const lifecycle: FastifyPluginAsync<LifecycleOptions> = async (app, { delayMs = 0, graceMs = 10000, random = systemRandom }) => {
  const sockets = new Set<TrackedSocket>()
  if (everywhere.size === 0) process.on('exit', resetUnanswered)
  everywhere.add(sockets)
  let phase: Phase = 'serving'
  let incomplete: ShutdownIncompleteError | null = null
  let drainingSince = 0

  function track (socket: TrackedSocket): void {
    sockets.add(socket)
    socket.on('close', () => { sockets.delete(socket) })
  }
  app.server.on('connection', track)
  const sessions = new Set<ServerHttp2Session>()
  app.server.on('session', (session: ServerHttp2Session) => {
    sessions.add(session)
    session.on('close', () => { sessions.delete(session) })
    if (phase === 'draining') session.close()
  })

  function noteLatest (socket: TrackedSocket, response: ServerResponse): void {
    // Fastify opens a second server where it listens on "localhost", and would wait for nobody there. (An injected request has no socket.)
    if (socket[kLatest] === undefined && !sockets.has(socket) && socket instanceof Socket) track(socket)
    socket[kLatest] = response
  }

  // Accepting may fail (no descriptors left): nobody else listens, and an error that nobody listens to ends the process.
  let toldAt = -Infinity
  app.server.on('error', (error) => {
    const now = performance.now()
    // Where listening itself failed, Fastify tells.
    if (!app.server.listening || now - toldAt < 1000) return
    toldAt = now
    app.log.error({ err: error }, 'listener_error')
  })

  const openOn = (socket: Socket): Exchange[] => app.hasDecorator('edge') ? app.edge.openOn(socket) : []

  function cutAll (): void {
    const open = [...sockets].filter(owesAnswer).length + [...sessions].filter((session) => openOn(socketOf(session)).length > 0).length
    if (open > 0) {
      incomplete = new ShutdownIncompleteError(open)
      app.log.error({ open, graceMs }, 'shutdown_incomplete')
      tell({ type: 'shutdown_incomplete', at: new Date().toISOString(), open, graceMs })
    }
    for (const socket of sockets) {
      // We cut these: the log must not say that their clients left.
      for (const exchange of openOn(socket)) exchange.fail('draining')
      const tunnel = tunnelOn(socket)
      tunnel?.cut()
      if (tunnel === null && owesAnswer(socket)) reset(socket)
      else socket.destroy()
    }
    for (const session of sessions) {
      for (const exchange of openOn(socketOf(session))) exchange.fail('draining')
      cutSession(session)
    }
  }

  const emitter = new Emitter<LifecycleEvent>((err) => { app.log.error({ err, source: 'lifecycle' }, 'listener_failed') })
  const tell = (event: LifecycleEvent): void => { emitter.emit(Object.freeze(event)) }

  app.decorate('lifecycle', { get phase () { return phase }, on: (_type: 'event', fn: (event: LifecycleEvent) => unknown) => emitter.on(fn) })

  app.addHook('onRequest', (request, reply, done) => {
    // Sessions of HTTP/2 know themselves what is open on them.
    if (!isHttp2(request.raw)) noteLatest(request.raw.socket, reply.raw)
    // Who asks whether the process lives and is ready is told so to the end.
    if (phase !== 'draining' || request.routeOptions.config.shedExempt === true) return done()
    refuse(reply.header('connection', 'close'), 'draining', retryAfter(1000, random), { evidence: { drainingForMs: Math.round(performance.now() - drainingSince), graceMs } })
  })

  app.addHook('onListen', async () => {
    app.log.info({ node: process.version }, 'proxy_started')
    tell({ type: 'proxy_started', at: new Date().toISOString(), node: process.version })
  })

  // The whole way down is here, before Fastify closes anything: what an exchange needs is there until the last one has ended.
  app.addHook('preClose', async () => {
    phase = 'stopping'
    const connections = sockets.size
    app.log.info({ delayMs, graceMs, connections }, 'shutdown_started')
    tell({ type: 'shutdown_started', at: new Date().toISOString(), delayMs, graceMs, connections })
    if (delayMs > 0) await sleep(delayMs)
    phase = 'draining'
    drainingSince = performance.now()
    // Fastify does not mind that its server is closed when its turn comes.
    if (app.server.listening) app.server.close()
    const grace = setTimeout(cutAll, graceMs)
    for (const session of sessions) session.close()
    while (sockets.size + sessions.size > 0) {
      for (const socket of sockets) {
        tunnelOn(socket)?.goAway()
        if (isIdle(socket)) socket.destroySoon()
      }
      await sleep(sweepMs)
      // A sweep that comes late comes before what has arrived meanwhile is read.
      await turn()
    }
    clearTimeout(grace)
  })

  app.addHook('onClose', async () => {
    everywhere.delete(sockets)
    if (everywhere.size === 0) process.off('exit', resetUnanswered)
    if (incomplete !== null) throw incomplete
  })
}

export default fp(lifecycle, { name: 'breakwater-lifecycle', fastify: '5.x' })
