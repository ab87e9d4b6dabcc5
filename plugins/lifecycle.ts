/**
 * The way down: readiness first, then the listener closes, accepted requests finish within the grace, connections without one are
 * closed at once; what is left at the end of the grace is cut and `app.close()` rejects. Decorates `app.lifecycle`.
 */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import type { ServerOptions } from '../config/schema.ts'
import { problem } from '../lib/http/problem.ts'
import { linger } from './connection.ts'
import { latestReplyOn } from './edge.ts'

export interface LifecycleOptions extends Partial<ServerOptions['shutdown']> {
  /** Further servers of this app to look after, such as the second one that Fastify opens for `localhost`. */
  servers?: Iterable<Server>
}

/** serving · stopping: still serving, readiness is off · draining: the listener is closed, accepted requests finish */
export type Phase = 'serving' | 'stopping' | 'draining'

export interface Lifecycle {
  readonly phase: Phase
}

declare module 'fastify' {
  interface FastifyInstance {
    lifecycle: Lifecycle
  }
}

/** The grace ended with requests still open; they were cut. */
export class ShutdownIncompleteError extends Error {
  readonly code = 'BREAKWATER_SHUTDOWN_INCOMPLETE'
  constructor (open: number) { super(`${open} connections were cut at the end of the grace time`) }
}

const sweepMs = 50

const lifecycle: FastifyPluginAsync<LifecycleOptions> = async (app, options) => {
  const delayMs = options.delayMs ?? 0
  const graceMs = options.graceMs ?? 10000
  const sockets = new Set<Socket>()
  let phase: Phase = 'serving'
  let sweep: NodeJS.Timeout | undefined
  let grace: NodeJS.Timeout | undefined
  let incomplete: ShutdownIncompleteError | null = null

  const follow = (server: Server): void => {
    server.on('connection', (socket: Socket) => {
      sockets.add(socket)
      socket.on('close', () => { sockets.delete(socket) })
    })
  }
  follow(app.server)
  for (const server of options.servers ?? []) if (server !== app.server) follow(server)

  /** Connections that owe nobody an answer: idle ones, and those on which nothing ever came. */
  function closeIdle (): void {
    for (const socket of sockets) {
      const latest = latestReplyOn(socket)
      const idle = latest === null ? socket.bytesRead === 0 : latest.raw.writableFinished && latest.request.raw.complete
      if (idle) socket.destroySoon()
    }
    app.server.closeIdleConnections()
  }

  function cutAll (): void {
    if (sockets.size === 0) return
    incomplete = new ShutdownIncompleteError(sockets.size)
    app.log.error({ open: sockets.size, graceMs }, 'shutdown_incomplete')
    for (const socket of sockets) socket.destroy()
  }

  app.decorate('lifecycle', { get phase () { return phase } })

  app.addHook('onRequest', (request, reply, done) => {
    if (phase !== 'draining') return done()
    request.exchange?.fail('draining')
    const { status, headers, body } = problem('draining', request.id, undefined, 1)
    linger(request.raw, reply.raw)
    reply.code(status).headers(headers).header('connection', 'close').send(body)
  })

  app.addHook('onListen', async () => {
    app.log.info({ node: process.version }, 'proxy_started')
  })

  app.addHook('preClose', async () => {
    phase = 'stopping'
    app.log.info({ delayMs, graceMs, connections: sockets.size }, 'shutdown_started')
    if (delayMs > 0) await sleep(delayMs)
    phase = 'draining'
    closeIdle()
    sweep = setInterval(closeIdle, sweepMs)
    grace = setTimeout(cutAll, graceMs)
  })

  app.addHook('onClose', async () => {
    clearInterval(sweep)
    clearTimeout(grace)
    if (incomplete !== null) throw incomplete
  })
}

export default fp(lifecycle, { name: 'breakwater-lifecycle', fastify: '5.x' })
