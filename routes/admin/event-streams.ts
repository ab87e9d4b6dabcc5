import type { ServerResponse } from 'node:http'
import type { EventJournal, JournalEvent } from '../../plugins/event-journal.ts'

export interface EventStreamsOptions {
  /** How often an idle stream gets a comment, so that nobody on the way takes it for dead. Default: 15000 ms. */
  heartbeatMs?: number
  /** Streams at the same time. Default: 16. */
  maxStreams?: number
  /** A client is dropped when more bytes than these wait for it. Default: 1 MiB. */
  maxWaitingBytes?: number
  /** Told when a client is dropped. */
  onDrop?: () => void
}

/** Server-sent events of the journal: `id` is the sequence number, `data` the event as JSON. Bounded in number and in memory. */
export class EventStreams {
  readonly #events: EventJournal
  readonly #open = new Set<ServerResponse>()
  readonly #options: Required<EventStreamsOptions>
  #stop: (() => void) | undefined
  #closed = false

  constructor (events: EventJournal, { heartbeatMs = 15000, maxStreams = 16, maxWaitingBytes = 1048576, onDrop = () => {} }: EventStreamsOptions = {}) {
    this.#events = events
    this.#options = { heartbeatMs, maxStreams, maxWaitingBytes, onDrop }
  }

  get size (): number {
    return this.#open.size
  }

  /** Why no further stream is opened, or null. */
  get refusal (): string | null {
    if (this.#closed) return 'the server is closing'
    return this.#open.size < this.#options.maxStreams ? null : `no more than ${this.#options.maxStreams} streams are served at a time`
  }

  /** Answers with what is kept after `since` and then with every event as it comes. */
  open (response: ServerResponse, headers: Record<string, string>, since: number): void {
    if (response.destroyed) return
    response.on('error', () => {})
    response.on('close', () => { this.#remove(response) })
    response.writeHead(200, headers)
    const { events, firstSeq, lastSeq } = this.#events.since(since)
    const lost = since > 0 && since < firstSeq - 1
    // Named, so that who only takes events does not see it; without an id, so that the next stream resumes where this one does.
    response.write(`event: stream\ndata: ${JSON.stringify({ run: this.#events.run, firstSeq, lastSeq, lost: lost ? [since + 1, firstSeq - 1] : null, restarted: since > lastSeq })}\n\n`)
    response.write(lost ? `: events ${since + 1} to ${firstSeq - 1} are no longer kept\n\n` : ': breakwater events\n\n')
    for (const event of events) response.write(frameOf(event))
    this.#open.add(response)
    this.#stop ??= this.#start()
  }

  /** Ends all streams, for good. */
  close (): void {
    this.#closed = true
    for (const response of this.#open) response.end()
  }

  #start (): () => void {
    const leave = this.#events.subscribe((event) => { this.#sendAll(frameOf(event)) })
    const timer = setInterval(() => { this.#sendAll(':\n\n') }, this.#options.heartbeatMs)
    timer.unref()
    return () => {
      leave()
      clearInterval(timer)
    }
  }

  #sendAll (frame: string): void {
    for (const response of this.#open) {
      if (!response.writableEnded) response.write(frame)
      if (response.writableLength <= this.#options.maxWaitingBytes) continue
      this.#remove(response)
      response.destroy()
      this.#options.onDrop()
    }
  }

  #remove (response: ServerResponse): void {
    this.#open.delete(response)
    if (this.#open.size > 0) return
    this.#stop?.()
    this.#stop = undefined
  }
}

const frameOf = (event: JournalEvent): string => `id: ${event.seq}\ndata: ${JSON.stringify(event)}\n\n`
