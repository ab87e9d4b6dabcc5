import { createServer, type Server, type TLSSocket } from 'node:tls'
import type { ServerTlsOptions } from '../../config/schema-server.ts'
import { loadCertificates, type CertificateView, type LoadedCertificates } from './certificates.ts'

/**
 * Makes TLS of connections that others accept: they are given to `server` with `emit('connection', socket)`, and come back by its
 * event `secureConnection`.
 */
export class TlsTermination {
  readonly server: Server
  readonly #options: ServerTlsOptions
  #loaded: LoadedCertificates

  /**
   * @param protocols for ALPN, the best first
   * @param handshakeMs time limit of Node's own, which must not be the shorter one
   * @throws what reading the files throws
   */
  constructor (options: ServerTlsOptions, protocols: string[], handshakeMs: number) {
    this.#options = options
    this.#loaded = loadCertificates(options)
    const { clientCertificates } = options
    this.server = createServer({
      ...this.#loaded.fallback,
      ALPNProtocols: protocols,
      handshakeTimeout: handshakeMs,
      requestCert: clientCertificates !== undefined,
      rejectUnauthorized: clientCertificates?.mode === 'require',
      SNICallback: (name, done) => { done(null, this.#loaded.byName.find(name)) }
    })
  }

  get certificates (): readonly CertificateView[] { return this.#loaded.views }

  /** All files that certificates are read from. */
  get files (): readonly string[] {
    const { certificates, clientCertificates } = this.#options
    return [...new Set([...certificates.flatMap(({ cert, key }) => [cert, key]), ...clientCertificates === undefined ? [] : [clientCertificates.ca]])]
  }

  /**
   * Reads the files again: new handshakes get what they say now, connections stay. What is wrong changes nothing.
   * @returns false: they say what they said before
   * @throws what reading the files throws
   */
  reload (): boolean {
    const loaded = loadCertificates(this.#options)
    if (loaded.contents === this.#loaded.contents) return false
    this.server.setSecureContext(loaded.fallback)
    this.#loaded = loaded
    return true
  }

  /**
   * Why a client may not go on although its handshake was fine; null: it may. A certificate that is shown has to be valid, whether one
   * has to be shown or not; and valid now, also where an earlier session is resumed.
   */
  refusalOf (socket: TLSSocket): string | null {
    const certificate = this.#options.clientCertificates === undefined ? undefined : socket.getPeerX509Certificate()
    if (certificate === undefined) return null
    if (!socket.authorized) return String(socket.authorizationError)
    return Date.parse(certificate.validTo) < Date.now() ? 'CERT_HAS_EXPIRED' : null
  }
}
