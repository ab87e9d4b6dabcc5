import type { TestContext } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { answer, rawUpstream, send } from '../../support/faulty-upstream.ts'
import type { RawHandler, RawUpstream, RawUpstreamOptions } from '../../support/faulty-upstream.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Gateway, GatewayOptions } from '../../support/gateway.ts'

export interface Pair {
  gateway: Gateway
  upstream: RawUpstream
}

/** A gateway in front of one scripted upstream. */
export async function inFront (t: TestContext, handler: RawHandler, options: GatewayOptions = {}, upstreamOptions: RawUpstreamOptions = {}): Promise<Pair> {
  const upstream = await rawUpstream(handler, upstreamOptions)
  t.after(() => upstream.close())
  const gateway = await startGateway(t, { upstreams: [upstream.url], ...options })
  return { gateway, upstream }
}

/** The bytes of a request; the Host field is added, and Content-Length where there is a body and no framing field. */
export function request (method = 'GET', path = '/', headers: Record<string, string> = {}, body: string | Buffer = ''): Buffer {
  const bytes = Buffer.from(body as string, 'latin1')
  const names = new Set(Object.keys(headers).map(name => name.toLowerCase()))
  const fields: Record<string, string> = names.has('host') ? { ...headers } : { Host: 'shop.example', ...headers }
  if (bytes.length > 0 && !names.has('content-length') && !names.has('transfer-encoding')) fields['Content-Length'] = String(bytes.length)
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${head}\r\n`, 'latin1'), bytes])
}

export const get = request()

/** Answers with the body that came, and tells the target and the length. */
const echo: RawHandler = async (socket, { target, body, header }) => {
  const { body: bytes } = await body()
  await send(socket, answer({ headers: [['Content-Type', 'text/plain'], ['X-Target', target], ['X-Length', header('content-length') ?? 'none']], body: bytes }))
}

/** A gateway in somebody's app with routes of its own beside the gateway's. */
export function withRoutes (t: TestContext, routes: (app: FastifyInstance) => void, handler: RawHandler = echo): Promise<Pair> {
  return inFront(t, handler, { extend: app => app.register(async (scope) => { routes(scope) }) })
}
