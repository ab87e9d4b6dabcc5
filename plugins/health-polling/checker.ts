import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import { buildConnector, Client, type Dispatcher } from 'undici'
import type { HealthOptions } from '../../config/schema.ts'
import type { Clock } from '../../lib/clock.ts'
import { causeOfError, type CheckCause, type CheckStage } from '../../lib/health/cause.ts'
import type { Upstream } from '../upstream-pools.ts'
import { Deadline } from './deadline.ts'

/** More of an answer's body than this is not read; the status has been seen, and that decides. */
const maxBodyBytes = 65536
/** The largest response head, as for proxied exchanges. */
const maxHeaderBytes = 65536

const { version } = createRequire(import.meta.url)('fastify-breakwater/package.json') as { version: string }
const headers = { 'user-agent': `breakwater-health/${version}`, accept: '*/*' }

export interface Verdict {
  /** null: the check says nothing about the upstream. */
  passed: boolean | null
  /** The status of the answer, or null where none came. */
  status: number | null
  cause: CheckCause
  /** How long the check took. */
  ms: number
  /** What lies behind a cause that is an error. */
  error: Error | null
}

type Target = Pick<Upstream, 'url' | 'connector'>

/**
 * Checks one upstream, over a connection of its own, so that a pool at its limit does not fail the check. A check that does not end
 * cleanly takes its connection with it: nothing of it can reach the next one.
 */
export class Checker {
  readonly #target: Target
  readonly #options: HealthOptions
  readonly #keepAliveMs: number
  readonly #clock: Clock
  #client: Client | undefined
  #socket: Socket | undefined
  /** Requests written to the present connection. */
  #uses = 0
  #stop: (() => void) | undefined
  #destroyed = false

  constructor (target: Target, options: HealthOptions, keepAliveMs: number, clock: Clock) {
    this.#target = target
    this.#options = options
    this.#keepAliveMs = keepAliveMs
    this.#clock = clock
  }

  /** One check. Never rejects. Call it only when the one before has ended. */
  run (): Promise<Verdict> {
    const startedAt = this.#clock()
    const { timeoutMs, statuses: [lowest = 200, highest = 299] } = this.#options
    return new Promise((resolve) => {
      let status: number | null = null
      let ended = false

      const end = (passed: boolean | null, cause: CheckCause, clean: boolean, error: Error | null = null): void => {
        if (ended) return
        ended = true
        deadline.cancel()
        this.#stop = undefined
        if (!clean) this.#drop()
        if (passed !== null && status !== null && (status < lowest || status > highest)) {
          passed = false
          cause = `status_${status}`
        } else if (passed === false && deadline.stalledMs >= timeoutMs) {
          passed = null
          cause = 'event_loop_stall'
        }
        resolve({ passed, status, cause, ms: this.#clock() - startedAt, error })
      }
      const fail = (error: Error, stage: CheckStage): void => {
        const cause = this.#causeOf(error, stage)
        end(cause === 'local_error' ? null : false, cause, false, error)
      }
      const deadline = new Deadline(timeoutMs, this.#clock, () => end(false, 'timeout', false))
      this.#stop = () => end(null, 'stopped', false)

      const send = (mayRepeat: boolean): void => {
        let stage: CheckStage = 'connect'
        let reused = false
        let bytes = 0
        this.#dispatch({
          onRequestStart: () => {
            stage = 'headers'
            reused = this.#uses++ > 0
          },
          onResponseStart: (_controller, code) => {
            if (code < 200) return
            stage = 'body'
            status = code
          },
          onResponseData: (_controller, chunk) => {
            bytes += chunk.length
            if (bytes > maxBodyBytes) end(true, 'check_passed', false)
          },
          onResponseEnd: () => end(true, 'check_passed', true),
          onResponseError: (_controller, error) => {
            if (ended) return
            // The upstream may close an idle connection just as we use it again: that is no failure of the upstream.
            if (mayRepeat && reused && stage === 'headers' && this.#causeOf(error, stage) === 'connection_reset') {
              this.#drop()
              send(false)
            } else if (hasNoBody(status) && codeOf(error) === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') {
              end(true, 'check_passed', false)
            } else {
              fail(error, stage)
            }
          }
        }, (error) => fail(error, 'connect'))
      }
      if (this.#destroyed) this.#stop()
      else send(true)
    })
  }

  /** Ends a running check as `stopped` and closes the connection. */
  destroy (): void {
    this.#destroyed = true
    this.#stop?.()
    this.#drop()
  }

  #dispatch (handler: Dispatcher.DispatchHandler, onThrown: (error: Error) => void): void {
    const { url } = this.#target
    try {
      this.#client ??= this.#connect()
      this.#client.dispatch({ path: url.basePath + this.#options.path, method: 'GET', headers }, handler)
    } catch (error) {
      onThrown(error as Error)
    }
  }

  #connect (): Client {
    const connector = buildConnector({ ...this.#target.connector(), timeout: 0 })
    return new Client(this.#target.url.origin, {
      // Kept, because undici forgets a connection that is still being made when its client is destroyed.
      connect: (options, callback) => {
        this.#uses = 0
        this.#socket = connector(options, callback) as unknown as Socket
      },
      pipelining: 1,
      maxHeaderSize: maxHeaderBytes,
      // The deadline measures all of it, to the millisecond; undici's own timers are coarse.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: this.#keepAliveMs,
      keepAliveMaxTimeout: this.#keepAliveMs
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

  #causeOf (error: Error, stage: CheckStage): ReturnType<typeof causeOfError> {
    const { secure, socketPath } = this.#target.url
    const { syscall } = error as NodeJS.ErrnoException
    return causeOfError({ name: error.name, code: codeOf(error), syscall: syscall ?? '', message: error.message, stage, secure, unix: socketPath !== null })
  }
}

const codeOf = (error: Error): string => (error as NodeJS.ErrnoException).code ?? ''

/** Such an answer ends with its head, whatever length it names; undici takes that length for a promise. */
const hasNoBody = (status: number | null): boolean => status === 204 || status === 304
