import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { certificate, type CertificateOptions, type Pair } from '../../config/certificate.ts'
import { answer, rawUpstream, send, type RawHandler } from '../../support/faulty-upstream.ts'
import { startGateway, type Gateway, type GatewayOptions } from '../../support/gateway.ts'
import { within } from '../../support/wait.ts'

/** A folder of certificates, gone at the end of the test. */
export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), 'breakwater-tls-'))

  constructor (t: Pick<TestContext, 'after'>) {
    t.after(() => { rmSync(this.path, { recursive: true }) })
  }

  write (file: string, text: string): string {
    const path = join(this.path, file)
    writeFileSync(path, text)
    return path
  }

  /** Writes both files of a pair, as options name them. */
  pair (name: string, pair: Pair): { cert: string, key: string } {
    return { cert: this.write(`${name}.pem`, pair.cert), key: this.write(`${name}.key`, pair.key) }
  }

  issue (name: string, options: Partial<CertificateOptions> = {}): { cert: string, key: string } {
    return this.pair(name.replace('*', 'any'), certificate({ name, names: [name], ...options }))
  }
}

/** Answers with the head that it got. */
export const echo: RawHandler = async (socket, request) => {
  await request.body()
  await send(socket, answer({ body: request.text }))
}

/** A gateway before an upstream that answers with the heads that it gets. */
export async function startListener (t: TestContext, server: Record<string, unknown>, options: Omit<GatewayOptions, 'upstreams' | 'server'> = {}, handler: RawHandler = echo): Promise<Gateway> {
  const behind = await rawUpstream(handler)
  t.after(() => behind.close())
  return startGateway(t, { ...options, server, upstreams: [behind.url] })
}

export interface Asked {
  socket: TLSSocket
  /** CN of the certificate that was got. */
  name: string
  /** All that came, until the end or `enough`. */
  text: string
}

export const get = 'GET /a HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n'

/** Makes TLS without checking the certificate, sends a request, and reads to the end. @throws the connection's error */
export async function ask (port: number, options: ConnectionOptions = {}, request = get): Promise<Asked> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options })
  let text = ''
  let name = ''
  const done = new Promise<void>((resolve, reject) => {
    socket.on('secureConnect', () => {
      name = String(socket.getPeerCertificate().subject?.CN)
      socket.write(request)
    })
    socket.on('data', (bytes: Buffer) => { text += bytes.toString('latin1') })
    socket.on('error', reject).on('close', () => { resolve() })
  })
  await within(done, { what: 'the end of a TLS connection' }).finally(() => { socket.destroy() })
  return { socket, name, text }
}
