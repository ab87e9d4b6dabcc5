/**
 * The event journal: what happened lately, numbered and in order. Breaker transitions and health changes go in by themselves, the
 * rest by `record`. Decorates `app.events`.
 */
import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import type { EventType } from '../lib/event-types.ts'
import { Emitter } from '../lib/emitter.ts'
import { Journal, type JournalEvent, type JournalPage } from '../lib/journal.ts'
import type { BreakerTransition } from './breaker-registry.ts'
import type { ConfigEvent } from './configuration.ts'
import type { DiscoveryEvent } from './discovery.ts'
import type { CheckTrouble, HealthChange, RemovalHeld } from './health-polling.ts'
import type { CertificatesEvent } from './listener.ts'
import type { LifecycleEvent } from './lifecycle.ts'
import type { ShedEvent } from './load-shedding.ts'
import type { PoolEvent } from './upstream-pools.ts'

export type { JournalEvent, JournalPage }

export interface EventJournalOptions {
  /** How many events are kept, 1 .. 1000000. Default: 1000. */
  capacity?: number
}

export type EventListener = (event: JournalEvent) => unknown

export interface EventJournal {
  /** When this journal began, ISO 8601: another one after a restart, whose numbers begin anew. */
  readonly run: string
  /** Number of the newest event; 0 before the first. */
  readonly lastSeq: number
  /**
   * Keeps an event and tells the listeners. `fields` is plain data and is copied, as JSON says it: a BigInt as text, without functions. An `at`
   * (ISO 8601) among them is when it happened, else that is now. Throws a RangeError for fields that hold themselves.
   */
  record (type: string, fields?: Readonly<Record<string, unknown>>): JournalEvent
  /** The events after `seq`, oldest first, at most `limit`; `firstSeq` tells whether some before them are lost. */
  since (seq: number, limit?: number): JournalPage
  /** Calls `listener` on each event, in order, until the returned function is called. One that throws is logged and harms nobody. */
  subscribe (listener: EventListener): () => void
}

declare module 'fastify' {
  interface FastifyInstance {
    events: EventJournal
  }
}

const eventJournal: FastifyPluginAsync<EventJournalOptions> = async (app, options) => {
  const journal = new Journal(options.capacity)
  const listeners = new Emitter<JournalEvent>((err) => { app.log.error({ err, source: 'event-journal' }, 'listener_failed') })
  const sources = new Map<'breakers' | 'configuration' | 'discovery' | 'health' | 'held' | 'trouble' | 'lifecycle' | 'listener' | 'pools' | 'shedding', () => void>()

  function record (type: string, fields: Readonly<Record<string, unknown>> = {}): JournalEvent {
    const { at } = fields
    const event = journal.append(type, typeof at === 'string' ? at : new Date().toISOString(), fields)
    listeners.emit(event)
    return event
  }

  const follow = (event: BreakerTransition | HealthChange | RemovalHeld | CheckTrouble | PoolEvent | DiscoveryEvent | ConfigEvent | CertificatesEvent | ShedEvent | LifecycleEvent): void => { record(event.type satisfies EventType, { ...event }) }

  /** As early as possible, so that nothing is missed, and again when the app is ready, for what was registered after us. */
  function connect (): void {
    if (app.hasDecorator('breakers') && !sources.has('breakers')) sources.set('breakers', app.breakers.on('transition', follow))
    if (app.hasDecorator('health') && !sources.has('health')) sources.set('health', app.health.on('change', follow))
    if (app.hasDecorator('health') && !sources.has('held')) sources.set('held', app.health.on('held', follow))
    if (app.hasDecorator('health') && !sources.has('trouble')) sources.set('trouble', app.health.on('trouble', follow))
    if (app.hasDecorator('discovery') && !sources.has('discovery')) sources.set('discovery', app.discovery.on('change', follow))
    if (app.hasDecorator('configuration') && !sources.has('configuration')) sources.set('configuration', app.configuration.on('event', follow))
    if (app.hasDecorator('listener') && !sources.has('listener')) sources.set('listener', app.listener.on('event', follow))
    if (app.hasDecorator('shedding') && !sources.has('shedding')) sources.set('shedding', app.shedding.on('event', follow))
    if (app.hasDecorator('lifecycle') && !sources.has('lifecycle')) sources.set('lifecycle', app.lifecycle.on('event', follow))
    if (app.hasDecorator('pools') && !sources.has('pools')) sources.set('pools', app.pools.on('event', follow))
  }

  connect()
  app.addHook('onReady', async () => { connect() })
  app.addHook('onClose', async () => {
    for (const leave of sources.values()) leave()
    listeners.clear()
  })

  app.decorate('events', {
    run: new Date().toISOString(),
    get lastSeq () { return journal.lastSeq },
    record,
    since: (seq: number, limit?: number) => journal.since(seq, limit),
    subscribe: (listener: EventListener) => listeners.on(listener)
  })
}

export default fp(eventJournal, { name: 'breakwater-event-journal', fastify: '5.x' })
