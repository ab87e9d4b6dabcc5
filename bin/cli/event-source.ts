import { setTimeout as sleep } from 'node:timers/promises'
import { boundedSignal } from '../bounded.ts'
import { AdminFailure, authorization, failureText, tokenHint, urlOf, type Admin } from '../admin-client.ts'

export interface JournalEvent {
  seq: number
  at: string
  type: string
  [field: string]: unknown
}

/** A line of server-sent events may not be longer: an event is a few hundred bytes. */
const maxLineChars = 1_048_576
const firstPauseMs = 250
const maxPauseMs = 10_000
/** The listener sends a comment every 15 s: twice that long in silence is a connection that is gone. */
const silenceMs = 35_000

/** Takes a stream of server-sent events apart, piece by piece (HTML Living Standard, 9.2.6). */
export class EventParser {
  #rest = ''
  #name = ''
  #data: string[] = []

  /** The `data` of the events that are complete with this piece, and comments. What has a name, as the head of a stream, is no event of the journal. @throws AdminFailure for a line without an end */
  push (piece: string): Array<{ data: string } | { comment: string }> {
    const lines = (this.#rest + piece).split(/\r\n|\n|\r(?=[^\n])/)
    this.#rest = lines.pop() ?? ''
    if (this.#rest.length > maxLineChars) throw new AdminFailure(3, 'the stream has a line without an end')
    const found: Array<{ data: string } | { comment: string }> = []
    for (const line of lines) {
      if (line === '') {
        if (this.#data.length > 0 && this.#name === '') found.push({ data: this.#data.join('\n') })
        this.#name = ''
        this.#data = []
      } else if (line.startsWith(':')) {
        if (line.length > 1) found.push({ comment: line.slice(1).trim() })
      } else if (line.startsWith('data:')) {
        this.#data.push(line.slice(line.startsWith('data: ') ? 6 : 5))
      } else if (line.startsWith('event:')) {
        this.#name = line.slice(6).trim()
      }
    }
    return found
  }
}

const isEvent = (value: unknown): value is JournalEvent =>
  typeof value === 'object' && value !== null && 'seq' in value && typeof value.seq === 'number' && 'type' in value && typeof value.type === 'string' && 'at' in value && typeof value.at === 'string'

function eventOf (data: string): JournalEvent {
  try {
    const event: unknown = JSON.parse(data)
    if (isEvent(event)) return event
  } catch { /* told below */ }
  throw new AdminFailure(3, 'the stream has what is no event')
}

export interface FollowOptions {
  /** Number of the last event that is known. */
  since: number
  stopped: AbortSignal
  onEvent: (event: JournalEvent) => void
  /** Told when the connection is lost and when events are. */
  onTrouble: (text: string) => void
}

/**
 * Follows the journal until `stopped`. A connection that ends is made again, from the last event on, with pauses that double up to
 * 10 s. @throws AdminFailure where the first one cannot be made, or the proxy refuses
 */
export async function followEvents (admin: Admin, { since, stopped, onEvent, onTrouble }: FollowOptions): Promise<void> {
  let last = since
  let pauseMs = firstPauseMs
  let connected = false
  while (!stopped.aborted) {
    const limit = boundedSignal(silenceMs, stopped)
    let why = 'the stream ended'
    try {
      const response = await fetch(urlOf(admin.base, 'events/stream'), {
        redirect: 'manual',
        signal: limit.signal,
        headers: { accept: 'text/event-stream', 'last-event-id': String(last), ...authorization(admin.token) }
      })
      if (response.status !== 200 || response.body === null || !(response.headers.get('content-type') ?? '').startsWith('text/event-stream')) {
        void response.body?.cancel()
        // Too many streams, or a restart under way: worth another try, if it worked before.
        if (!connected || response.status !== 503) throw new AdminFailure(response.status === 404 || response.status === 503 ? 1 : 3, `${admin.base}: it answers ${response.status}${tokenHint(response.status)}`)
        why = 'it answers 503'
      } else {
        connected = true
        const parser = new EventParser()
        const decoder = new TextDecoder()
        for await (const piece of response.body as AsyncIterable<Uint8Array>) {
          limit.renew()
          pauseMs = firstPauseMs
          for (const part of parser.push(decoder.decode(piece, { stream: true }))) {
            if ('comment' in part) {
              if (part.comment.includes('no longer kept')) onTrouble(part.comment)
              continue
            }
            const event = eventOf(part.data)
            last = event.seq
            onEvent(event)
          }
        }
      }
    } catch (error) {
      if (stopped.aborted) return
      if (error instanceof AdminFailure) throw error
      if (!connected) throw new AdminFailure(3, `${admin.base} cannot be reached: ${failureText(error)}`)
      why = limit.signal.aborted ? `nothing came for ${silenceMs / 1000} s` : failureText(error)
    } finally {
      limit.end()
    }
    if (stopped.aborted) return
    onTrouble(`${why}; trying again in ${pauseMs} ms`)
    await sleep(pauseMs, null, { signal: stopped }).catch(() => {})
    pauseMs = Math.min(maxPauseMs, pauseMs * 2)
  }
}
