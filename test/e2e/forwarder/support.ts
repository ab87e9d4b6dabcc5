import type { TestContext } from 'node:test'
import { rawUpstream } from '../../support/faulty-upstream.ts'
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
