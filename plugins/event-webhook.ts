/**
 * Sends events of the journal to an address: as JSON with POST, in batches, with back-off. Nothing waits for it: what does not fit into its
 * queue is dropped and counted. Decorates `app.eventWebhook`.
 */
import { hostname } from 'node:os'
import { isDeepStrictEqual } from 'node:util'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { Agent, request } from 'undici'
import { completeWebhook } from '../config/complete.ts'
import type { WebhookOptions } from '../config/schema-events.ts'
import type { EventType } from '../lib/event-types.ts'
import { Outbox } from '../lib/outbox.ts'
import { parseRetryAfter } from '../lib/retry/retry-after.ts'
import { systemRandom, type Random } from '../lib/random.ts'
import type {} from './configuration.ts'
import type { JournalEvent } from './event-journal.ts'

export type EventWebhookOptions = Partial<WebhookOptions> & {
  /** Where the jitter of its back-off comes from. Default: Math.random. */
  random?: Random
}

export interface WebhookView {
  /** An address is configured. */
  readonly enabled: boolean
  readonly queued: number
  /** Events that were taken, and that were dropped: for want of room, or because they were refused for good. */
  readonly delivered: number
  readonly dropped: number
  /** Since when deliveries fail, ISO 8601, and why the last one did; null: they do not. */
  readonly failing: { readonly since: string, readonly error: string } | null
}

export interface EventWebhook {
  view (): WebhookView
  /** Swaps the options; null: nothing is sent. What waits stays, as far as it has room. @throws TypeError that names each bad option by its path */
  configure (options: Partial<WebhookOptions> | null): void
}

declare module 'fastify' {
  interface FastifyInstance {
    eventWebhook: EventWebhook
  }
}

const maxBatch = 100
/** Events of one moment go together. */
const gatherMs = 100
/** What is left when the app closes gets so long, at most. */
const partingMs = 1000

/** Statuses that may be others later. */
const isPassing = (status: number): boolean => status >= 500 || status === 408 || status === 429

/** In ms; 0 where nothing is asked, or nothing that can be read. */
const retryAfterOf = (value: string | string[] | undefined): number => typeof value === 'string' ? parseRetryAfter(value, Date.now()) ?? 0 : 0

const tooLate = new Error('the delivery took too long')
const moved = new Error('the address is another one by now')

class Sender {
  readonly #app: FastifyInstance
  readonly #random: Random
  readonly #agent = new Agent({ connections: 1, keepAliveTimeout: 10000, connect: { timeout: 5000 } })
  readonly outbox: Outbox<JournalEvent>
  options: WebhookOptions | null
  delivered = 0
  failing: { since: number, error: string } | null = null
  #droppedBefore = 0
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | null = null
  /** Breaks off the latest delivery. None is shared: a signal remembers every one that was made of it, for as long as it is there. */
  #delivery: AbortController | null = null
  #closed = false

  constructor (app: FastifyInstance, options: WebhookOptions | null, random: Random) {
    this.#app = app
    this.options = options
    this.#random = random
    this.outbox = new Outbox(options?.maxQueued ?? 1)
  }

  take (event: JournalEvent): void {
    if (this.options === null || (this.options.types.length > 0 && !this.options.types.includes(event.type))) return
    this.outbox.push(event)
    this.#schedule()
  }

  #schedule (): void {
    if (this.#closed || this.#sending !== null || this.#timer !== undefined || this.outbox.size === 0) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.send(this.options?.timeoutMs ?? 0)
    }, Math.max(gatherMs, this.outbox.waitMs(this.#random))).unref()
  }

  /** Never rejects. */
  send (timeoutMs: number): void {
    const { options } = this
    if (options === null || this.#sending !== null) return
    const batch = this.outbox.take(maxBatch)
    if (batch.length === 0) return
    this.#sending = this.#deliver(batch, options, timeoutMs).finally(() => {
      this.#sending = null
      this.#schedule()
    })
  }

  async #deliver (events: readonly JournalEvent[], { url, headers }: WebhookOptions, timeoutMs: number): Promise<void> {
    const { dropped } = this.outbox
    const delivery = new AbortController()
    this.#delivery = delivery
    const { signal } = delivery
    // Not AbortSignal.timeout: within AbortSignal.any nothing holds it, and once it is collected it never fires.
    const late = setTimeout(() => { delivery.abort(tooLate) }, timeoutMs).unref()
    try {
      const body = JSON.stringify({ host: hostname(), run: this.#app.events.run, dropped: dropped - this.#droppedBefore, events })
      const answer = await request(url, { dispatcher: this.#agent, method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body, signal })
      await answer.body.dump()
      const { statusCode } = answer
      if (statusCode >= 200 && statusCode < 300) this.#taken(events.length, dropped)
      else if (signal.reason === moved) this.#startAfresh()
      else this.#failed(`status ${statusCode}`, isPassing(statusCode), retryAfterOf(answer.headers['retry-after']))
    } catch (error) {
      if (signal.reason === moved) return this.#startAfresh()
      const { code, name } = error as NodeJS.ErrnoException
      // Messages may have the address in them.
      this.#failed(signal.reason === tooLate ? `no answer within ${timeoutMs} ms` : code ?? name, true)
    } finally {
      clearTimeout(late)
    }
  }

  #taken (count: number, dropped: number): void {
    this.outbox.delivered()
    this.delivered += count
    const { failing } = this
    const lost = dropped - this.#droppedBefore
    this.#droppedBefore = dropped
    if (failing === null) return
    this.failing = null
    this.#tell('webhook_recovered', { lastedMs: Math.round(performance.now() - failing.since), dropped: lost })
  }

  #failed (error: string, again: boolean, askedMs = 0): void {
    if (again) this.outbox.cameBack(askedMs)
    else this.outbox.refused()
    const began = this.failing === null
    this.failing = { since: this.failing?.since ?? performance.now(), error }
    if (began) this.#tell('webhook_failing', { error, queued: this.outbox.size, dropped: this.outbox.dropped - this.#droppedBefore })
  }

  #tell (type: EventType, fields: object): void {
    this.#app.log[type === 'webhook_failing' ? 'warn' : 'info'](fields, type)
    if (!this.#closed) this.#app.events.record(type, { ...fields })
  }

  /** For another receiver: what the earlier one did is not held against it. */
  #startAfresh (): void {
    this.outbox.cameBack()
    this.outbox.forgive()
    this.failing = null
  }

  configure (options: WebhookOptions | null): void {
    const moves = !isDeepStrictEqual([options?.url, options?.headers], [this.options?.url, this.options?.headers])
    this.options = options
    this.outbox.setMaxQueued(options?.maxQueued ?? 0)
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (moves && this.#sending === null) this.#startAfresh()
    else if (moves) this.#delivery?.abort(moved)
    this.#schedule()
  }

  /** What is left gets one more try, unless none has been taken lately. */
  async close (): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    const parting = Math.min(partingMs, this.options?.timeoutMs ?? 0)
    const late = setTimeout(() => { void this.#agent.destroy() }, parting)
    await this.#sending
    if (this.failing === null) this.send(parting)
    await this.#sending
    clearTimeout(late)
    await this.#agent.destroy()
  }
}

const eventWebhook: FastifyPluginAsync<EventWebhookOptions> = async (app, { random = systemRandom, ...given }) => {
  const sender = new Sender(app, given.url === undefined ? null : completeWebhook(given), random)
  const leave = app.events.subscribe((event) => { sender.take(event) })

  app.decorate('eventWebhook', {
    view () {
      const { options, outbox: { size, dropped }, delivered, failing } = sender
      const since = failing === null ? '' : new Date(Date.now() - (performance.now() - failing.since)).toISOString()
      return { enabled: options !== null, queued: size, delivered, dropped, failing: failing === null ? null : { since, error: failing.error } }
    },
    configure (options: Partial<WebhookOptions> | null) { sender.configure(options === null ? null : completeWebhook(options)) }
  })

  if (app.hasDecorator('configuration')) {
    app.configuration.on('event', ({ type }) => {
      if (type === 'config_reloaded') sender.configure(app.configuration.current.events.webhook ?? null)
    })
  }

  app.addHook('onClose', async () => {
    leave()
    await sender.close()
  })
}

export default fp(eventWebhook, { name: 'breakwater-event-webhook', fastify: '5.x', dependencies: ['breakwater-event-journal'] })
