/**
 * The admin listener: a server of its own, so that what operators see and do is never on the public one. Opens when the app is
 * ready, before it listens, and closes with it, after its requests have ended. Decorates `app.adminAddress`.
 */
import { lookup } from 'node:dns/promises'
import { isIP, type AddressInfo } from 'node:net'
import createError from '@fastify/error'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { isLoopback } from '../lib/http/address.ts'
import { Connections } from './admin-listener/connections.ts'
import { createAdmin } from './admin-listener/server.ts'

export interface AdminListenerOptions {
  /** Address to listen on; a name is resolved once. Anything but loopback needs a token. Default: 127.0.0.1. */
  host?: string
  /** Port to listen on; 0: any free one. Default: 9090. */
  port?: number
  /** Whether there is one decides where we may listen; the routes are who ask for it. Empty or left out: none. */
  token?: string
  /** Registers the routes. Called when the app is ready, so that all of its decorations are there. */
  routes: (admin: FastifyInstance, listener: { loopbackOnly: boolean }) => unknown
}

export interface AdminAddress {
  readonly host: string
  readonly port: number
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Where the admin listener is; null unless it is open. */
    readonly adminAddress: AdminAddress | null
  }
}

const TokenRequired = createError('BREAKWATER_ADMIN_TOKEN_REQUIRED', 'the admin listener needs a token to listen on %s, which is not loopback')
const ListenFailed = createError('BREAKWATER_ADMIN_LISTEN_FAILED', 'the admin listener cannot listen on %s, port %s: %s')

const adminListener: FastifyPluginAsync<AdminListenerOptions> = async (app, options) => {
  const { host = '127.0.0.1', port = 9090, token = '', routes } = options
  const failed = (cause: unknown): Error =>
    Object.assign(new ListenFailed(host, port, (cause as NodeJS.ErrnoException).code ?? String(cause)), { cause })

  const ip = isIP(host) === 0 ? (await lookup(host).catch((error: unknown) => { throw failed(error) })).address : host
  const loopbackOnly = isLoopback(ip)
  if (token === '' && !loopbackOnly) throw new TokenRequired(host)

  let address: AdminAddress | null = null
  let stop: (() => Promise<void>) | undefined
  app.decorate('adminAddress', { getter: () => address })

  app.addHook('onReady', async () => {
    const admin = createAdmin(app.log)
    const connections = new Connections(admin.server)
    stop = () => connections.close(() => admin.close())
    await routes(admin, { loopbackOnly })
    await admin.ready()
    await admin.listen({ host: ip, port }).catch((error: unknown) => { throw failed(error) })
    // It serves the app and is no reason for the process to live.
    admin.server.unref()
    const bound = admin.server.address() as AddressInfo
    address = Object.freeze({ host: bound.address, port: bound.port })
    app.log.info(address, 'admin listening')
  })

  app.addHook('onClose', async () => {
    await stop?.()
    address = null
  })
}

export default fp(adminListener, { name: 'breakwater-admin-listener', fastify: '5.x' })
