/**
 * What the listener before this app does beside serving requests: tells of connections that fail before they can carry one, reads
 * certificates again when their files change or the configuration is read again, and warns before they expire. Decorates
 * `app.listener`. Where the app's server is not one of `serverOptions`, there is nothing to do.
 */
import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { Emitter } from '../lib/emitter.ts'
import type {} from './configuration.ts'
import { watchFile } from './file-watch.ts'
import type { CertificateView } from './listener/certificates.ts'
import { expiryOf } from './listener/expiry.ts'
import { FailureLog } from './listener/failure-log.ts'
import { frontOf } from './listener/front.ts'

export interface ListenerOptions {
  /** How often files of certificates are looked at where watching them tells nothing, in ms. Default: 5000. */
  pollMs?: number
}

/** What made somebody read the certificates again. */
export type CertificatesCause = 'file' | 'reload' | 'code'

/** What became of reading the certificates again, once it is so; and which of them end soon or have ended, at the start, after that, and once a day. Frozen. */
export type CertificatesEvent =
  | { readonly type: 'certificates_reloaded', readonly at: string, readonly cause: CertificatesCause, readonly certificates: readonly CertificateView[] }
  | { readonly type: 'certificates_rejected', readonly at: string, readonly cause: CertificatesCause, readonly error: string }
  | ({ readonly type: 'certificate_expired' | 'certificate_expires_soon', readonly at: string } & Pick<CertificateView, 'file' | 'names' | 'notAfter'>)

export interface Listener {
  /** The certificates in use, the first one for clients without a name; empty without TLS. */
  certificates (): readonly CertificateView[]
  /**
   * Reads the files again: new handshakes get what they say now, connections stay. What is wrong changes nothing and is logged.
   * Files that say what they said before change nothing either.
   */
  reloadCertificates (cause?: CertificatesCause): void
  /** Calls `fn` on each event until the returned function is called. A listener that throws is logged and harms nobody. */
  on (type: 'event', fn: (event: CertificatesEvent) => unknown): () => void
}

declare module 'fastify' {
  interface FastifyInstance {
    listener: Listener
  }
}

/** A certificate and its key are two files, and are rarely written in one moment. */
const settleMs = 500
const dayMs = 86_400_000

const listener: FastifyPluginAsync<ListenerOptions> = async (app, { pollMs = 5000 }) => {
  const front = frontOf(app.server)
  const tls = front?.tls ?? null
  const emitter = new Emitter<CertificatesEvent>((err) => { app.log.error({ err, source: 'listener' }, 'listener_failed') })
  const failures = new FailureLog(app.log)
  const stops: (() => void)[] = [() => { failures.close() }]

  if (front !== null) front.onFailure = (failure, address, error) => { failures.add(failure, address, error) }
  app.server.on('drop', () => { failures.add('connection_limit', '', null) })

  function reloadCertificates (cause: CertificatesCause = 'code'): void {
    if (tls === null) return
    const at = new Date().toISOString()
    try {
      if (!tls.reload()) return
      app.log.info({ cause, certificates: tls.certificates }, 'certificates_reloaded')
      emitter.emit(Object.freeze({ type: 'certificates_reloaded', at, cause, certificates: tls.certificates }))
      warn()
    } catch (failed) {
      // Its code, or what OpenSSL says: never the contents.
      const error = (failed as Error).message
      app.log.error({ cause, error }, 'certificates_rejected')
      emitter.emit(Object.freeze({ type: 'certificates_rejected', at, cause, error }))
    }
  }

  function warn (): void {
    for (const { file, names, notAfter } of tls?.certificates ?? []) {
      const expiry = expiryOf(notAfter, Date.now())
      if (expiry === null) continue
      const type = expiry === 'expired' ? 'certificate_expired' : 'certificate_expires_soon'
      app.log[expiry === 'expired' ? 'error' : 'warn']({ file, names, notAfter }, type)
      emitter.emit(Object.freeze({ type, at: new Date().toISOString(), file, names, notAfter }))
    }
  }

  function watch (files: readonly string[]): void {
    let timer: NodeJS.Timeout | undefined
    const changed = (): void => {
      clearTimeout(timer)
      timer = setTimeout(() => { reloadCertificates('file') }, settleMs).unref()
    }
    // A file that is away is told by the reload, once something is there again: until then nothing changes.
    for (const file of files) stops.push(watchFile(file, { pollMs, onChange: changed, onError: () => {} }))
    stops.push(() => { clearTimeout(timer) })
  }

  app.decorate('listener', {
    certificates: () => tls?.certificates ?? [],
    reloadCertificates,
    on: (_type: 'event', fn: (event: CertificatesEvent) => unknown) => emitter.on(fn)
  })

  app.addHook('onReady', async () => {
    if (tls === null) return
    warn()
    const daily = setInterval(warn, dayMs).unref()
    stops.push(() => { clearInterval(daily) })
    watch(tls.files)
    if (app.hasDecorator('configuration')) {
      stops.push(app.configuration.on('event', ({ type }) => { if (type === 'config_reloaded') reloadCertificates('reload') }))
    }
  })

  app.addHook('onClose', async () => {
    for (const stop of stops) stop()
    emitter.clear()
  })
}

export default fp(listener, { name: 'breakwater-listener', fastify: '5.x' })
