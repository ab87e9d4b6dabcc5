import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import { buildConnector, Client, type Dispatcher } from 'undici'
import type { CheckCause, CheckStage } from '../../lib/health/cause.ts'
import { judgeJson } from '../../lib/health/json.ts'
import { Negotiated } from '../http2/negotiated.ts'
import type { Sender } from '../http2/sender.ts'
import { Http2Sessions } from '../http2/sessions.ts'
import { Check, causeOf, codeOf, type Checker, type Subject, type Verdict } from './checker.ts'

/** More of an answer's body than this is not read. Unless a field of it is wanted, the status has been seen, and that decides. */
const maxBodyBytes = 65536
/** The largest response head, as for proxied exchanges. */
const maxHeaderBytes = 65536

const { version } = createRequire(import.meta.url)('fastify-breakwater/package.json') as { version: string }

/**
 * Checks one upstream with a request, over a connection of its own, so that a pool at its limit does not fail the check. A check that
 * does not end cleanly takes its connection with it: nothing of it can reach the next one.
 */
export class HttpChecker implements Checker {
  readonly #subject: Subject
  readonly #request: Dispatcher.DispatchOptions
  #client: Sender | undefined
  #socket: Socket | undefined
  /** Requests written to the present connection. */
  #uses = 0
  #check: Check | undefined
  #destroyed = false

  constructor (subject: Subject) {
    const { url, options, target } = subject
    this.#subject = subject
    this.#request = {
      path: url.basePath + options.path,
      method: 'GET',
      headers: {
        host: target.host,
        'user-agent': `breakwater-health/${version}`,
        accept: '*/*',
        // A body that is read has to come as it is.
        ...(options.json !== undefined && { 'accept-encoding': 'identity' })
      }
    }
  }

  run (): Promise<Verdict> {
    const check = new Check(this.#subject, (clean) => {
      this.#check = undefined
      if (!clean) this.#drop()
    })
    this.#check = check
    if (this.#destroyed) check.end('stopped', false)
    else this.#send(check, true)
    return check.verdict
  }

  destroy (): void {
    this.#destroyed = true
    this.#check?.end('stopped', false)
    this.#drop()
  }

  #send (check: Check, mayRepeat: boolean): void {
    const { json } = this.#subject.options
    const body: Buffer[] = []
    let stage: CheckStage = 'connect'
    let reused = false
    let bytes = 0
    const judge = (): CheckCause => json === undefined || check.statusFails ? 'check_passed' : judgeJson(Buffer.concat(body), json)
    this.#dispatch({
      onConnect: () => {
        stage = 'headers'
        reused = this.#uses++ > 0
      },
      onHeaders: (code) => {
        if (code < 200) return true
        stage = 'body'
        check.status = code
        return true
      },
      onData: (chunk) => {
        if (check.ended) return true
        bytes += chunk.length
        if (bytes > maxBodyBytes) check.end(json === undefined ? 'check_passed' : 'body_too_large', false)
        else if (json !== undefined) body.push(chunk)
        return true
      },
      onComplete: () => { check.end(judge(), true) },
      onError: (error) => {
        if (check.ended) return
        // The upstream may close an idle connection just as we use it again: that is no failure of the upstream.
        if (mayRepeat && reused && stage === 'headers' && causeOf(error, stage, this.#subject) === 'connection_reset') {
          this.#drop()
          this.#send(check, false)
        } else if (hasNoBody(check.status) && codeOf(error) === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') {
          check.end(judge(), false)
        } else {
          check.fail(error, stage)
        }
      }
    }, (error) => { check.fail(error, 'connect') })
  }

  #dispatch (handler: Dispatcher.DispatchHandler, onThrown: (error: Error) => void): void {
    try {
      this.#client ??= this.#connect()
      this.#client.dispatch(this.#request, handler)
    } catch (error) {
      onThrown(error as Error)
    }
  }

  #connect (): Sender {
    const { settings, target: { origin }, keepAliveMs, http2, options: { timeoutMs } } = this.#subject
    const connector = buildConnector({ ...settings, timeout: 0, allowH2: http2 !== 'off' })
    // Kept, because undici forgets a connection that is still being made when its client is destroyed.
    const connect = (options: buildConnector.Options, callback: buildConnector.Callback): Socket => {
      this.#uses = 0
      return this.#socket = connector(options, callback) as unknown as Socket
    }
    if (http2 === 'off') return this.#http1(buildConnector({ ...settings, timeout: 0 }))
    const sessions = { origin, connect, maxSessions: 1, maxStreams: 1, keepAliveMs, answerMs: timeoutMs }
    if (http2 === 'prior-knowledge') return new Http2Sessions(sessions)
    return new Negotiated((spare) => this.#http1(buildConnector({ ...settings, timeout: 0 }), spare), sessions, () => {})
  }

  #http1 (connector: buildConnector.connector, spare: () => Socket | null = () => null): Client {
    const { settings, target, keepAliveMs } = this.#subject
    return new Client(target.origin, {
      connect: (options, callback) => {
        this.#uses = 0
        const made = spare()
        if (made !== null) {
          this.#socket = made
          return callback(null, made)
        }
        // undici makes a server name of the Host that is asked for; one that is configured goes before it.
        const named = settings.servername === undefined ? options : { ...options, servername: settings.servername }
        this.#socket = connector(named, callback) as unknown as Socket
      },
      pipelining: 1,
      maxHeaderSize: maxHeaderBytes,
      // The deadline measures all of it, to the millisecond; undici's own timers are coarse.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMs
    })
  }

  #drop (): void {
    const client = this.#client
    const socket = this.#socket
    this.#client = undefined
    this.#socket = undefined
    client?.destroy().catch(() => {})
    socket?.destroy()
  }
}

/** Such an answer ends with its head, whatever length it names; undici takes that length for a promise. */
const hasNoBody = (status: number | null): boolean => status === 204 || status === 304
