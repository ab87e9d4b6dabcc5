/**
 * The flight recorder: why requests were refused, failed, were retried or slow, with the numbers of that moment; and a sample of the
 * others. Bounded in bytes. Decorates `app.recorder`.
 */
import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { completeRecorder } from '../config/complete.ts'
import type { RecorderOptions } from '../config/schema-recorder.ts'
import { systemRandom, type Random } from '../lib/random.ts'
import { selectRecords, type ListedRecord, type RecordQuery } from '../lib/record/select.ts'
import { textOf } from '../lib/record/text.ts'
import type { RequestRecord } from '../lib/record/types.ts'
import { RecordReader } from '../lib/record/view.ts'
import { Recorder, type Absence } from './flight-recorder/recorder.ts'
import type {} from './configuration.ts'
import type {} from './observation.ts'

export type { ListedRecord, RecordQuery, RequestRecord }

export interface FlightRecorderOptions extends Partial<RecorderOptions> {
  /** What the sample is drawn by. Default: Math.random. */
  random?: Random
}

export interface RecorderView {
  readonly enabled: boolean
  /** Records that are kept, what they take, and what they may. */
  readonly records: number
  readonly bytes: number
  readonly maxBytes: number
  /** When the oldest one was received, ISO 8601; null: there is none. */
  readonly oldestAt: string | null
  readonly slowMs: number
  readonly sampleRatio: number
}

export interface FlightRecorder {
  view (): RecorderView
  /** The latest record of this request id. */
  find (requestId: string): RequestRecord | undefined
  /** A record as plain text. */
  text (record: RequestRecord): string
  /** Why there is no record of this id, in a sentence. */
  whyMissing (requestId: string): string
  /** The newest first. With `distinct`, and with a high limit, this takes long where many are kept: see `listing`. */
  list (query?: RecordQuery): readonly ListedRecord[]
  /** The same as a generator, which stops after each piece of the work and returns them at its end. */
  listing (query?: RecordQuery): Generator<undefined, readonly ListedRecord[]>
  /** Swaps the options. What is kept stays, as far as it has room. @throws TypeError that names each bad option by its path */
  configure (options: Partial<RecorderOptions>): void
}

declare module 'fastify' {
  interface FastifyInstance {
    recorder: FlightRecorder
  }
}

const iso = (epochMs: number): string => new Date(epochMs).toISOString()

const flightRecorder: FastifyPluginAsync<FlightRecorderOptions> = async (app, { random = systemRandom, ...given }) => {
  const recorder = new Recorder(app, completeRecorder(given), random)
  const { ring } = recorder
  const startedAt = Date.now()
  let leave: (() => void) | null = null

  /** Where nothing is kept nobody looks. */
  function follow (): void {
    const { enabled } = recorder.options
    if (enabled) leave ??= app.observers.add(recorder)
    if (enabled || leave === null) return
    leave()
    leave = null
    ring.clear()
  }

  const absences: Record<Absence, () => string> = {
    not_kept: () => `it was answered well, in less than ${recorder.options.slowMs} ms and at the first attempt, and is not in the sample (${recorder.options.sampleRatio} of such requests)`,
    too_old: () => `its record ${ring.oldestAt === null ? 'was given up, and none is kept now' : `has made room for newer ones: the oldest that is kept is of ${iso(ring.oldestAt)}`} (recorder.maxBytes is ${recorder.options.maxBytes})`,
    unknown: () => `no request of this id has ended in this process since ${iso(startedAt)}: it is under way, or another process had it, or it was a probe or an admin call, or so many have come since that it is forgotten`
  }

  /** Of those that are kept now, however many come or have to go meanwhile. */
  function listing (query: RecordQuery = {}): Generator<undefined, ListedRecord[]> {
    const reader = new RecordReader(iso)
    return selectRecords(ring.newest(), query, (entry) => reader.read(entry))
  }

  app.decorate('recorder', {
    view () {
      const { enabled, maxBytes, slowMs, sampleRatio } = recorder.options
      return { enabled, records: ring.size, bytes: ring.bytes, maxBytes, oldestAt: ring.oldestAt === null ? null : iso(ring.oldestAt), slowMs, sampleRatio }
    },
    find (requestId: string) {
      const entry = ring.get(requestId)
      return entry === undefined ? undefined : new RecordReader(iso).read(entry)
    },
    text: textOf,
    whyMissing: (requestId: string) => recorder.options.enabled ? absences[recorder.absenceOf(requestId)]() : 'the recorder is off (recorder.enabled)',
    list (query: RecordQuery = {}) {
      const work = listing(query)
      for (let step = work.next(); ; step = work.next()) if (step.done === true) return step.value
    },
    listing,
    configure (options: Partial<RecorderOptions>) {
      recorder.configure(completeRecorder(options))
      follow()
    }
  })

  follow()
  if (app.hasDecorator('configuration')) {
    app.configuration.on('event', ({ type }) => {
      if (type !== 'config_reloaded') return
      recorder.configure(app.configuration.current.recorder)
      follow()
    })
  }
  app.addHook('onClose', async () => { leave?.() })
}

export default fp(flightRecorder, { name: 'breakwater-flight-recorder', fastify: '5.x', dependencies: ['breakwater-observation'] })
