import { existsSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { built, type Child, type Workshop } from '../children.ts'
import { warmPrefix } from '../../bin/load/load.ts'

/** What an upstream does with requests. Health checks are always answered well, as long as the process runs. */
export interface UpstreamScript {
  /** Takes requests and never answers them. */
  wedged: boolean
  status: number
  /** Time to an answer, in ms: `delayMs` and up to `jitterMs` more. */
  delayMs: number
  jitterMs: number
  /** Every so many requests the connection is reset in place of an answer. 0: none. */
  resetEvery: number
}

export const controlPath = '/__drill'

const steady: UpstreamScript = { wedged: false, status: 200, delayMs: 5, jitterMs: 0, resetEvery: 0 }

/** Something that happened at an upstream: its start, a connection, a request's head, or the end of a request. */
export interface Seen {
  what: 'start' | 'connection' | 'request' | 'end'
  /** By the machine's monotonic clock, in ms. */
  at: number
  /** Of the request; '' for what belongs to none. */
  id: string
}

const meanings: Record<string, Seen['what']> = { '!': 'start', '*': 'connection', '+': 'request', '-': 'end' }

/** A server of a drill: a process that can be killed, stopped and told how to behave, and whose record outlives it. */
export class DrillUpstream {
  readonly port: number
  readonly name: string
  readonly #workshop: Workshop
  readonly #record: string
  readonly #script: UpstreamScript
  readonly #seed: number
  #child: Child | null = null

  constructor (workshop: Workshop, name: string, port: number, seed: number, script: Partial<UpstreamScript>) {
    this.#workshop = workshop
    this.name = name
    this.port = port
    this.#seed = seed
    this.#script = { ...steady, ...script }
    this.#record = join(workshop.place(name), 'record')
  }

  /** Starts it, or starts it again, with the script as it is. Resolves when it answers. @throws when it does not within 10 seconds */
  async start (): Promise<void> {
    const child = this.#workshop.start(this.name, {
      program: process.execPath,
      args: [built('bench/drills/upstream-process.js'), JSON.stringify({ ...this.#script, port: this.port, record: this.#record, seed: this.#seed })]
    })
    this.#child = child
    for (const until = performance.now() + 10_000; ;) {
      try {
        return await this.#send({})
      } catch (error) {
        if (child.ended() !== null || performance.now() > until) throw new Error(`${this.name} did not start: ${child.ended()} ${child.complaint()}`, { cause: error })
      }
      await sleep(10)
    }
  }

  /** Ends it at once, by SIGKILL: the system closes its connections. Resolves when it is gone. */
  async kill (): Promise<void> {
    this.#child?.signal('SIGKILL')
    await this.#child?.gone
  }

  /** Stops it from running: the system still accepts connections for it. */
  stop (): void {
    this.#child?.signal('SIGSTOP')
  }

  /** Lets it run on. */
  go (): void {
    this.#child?.signal('SIGCONT')
  }

  /** Changes the script, from the next request on. */
  async set (changes: Partial<UpstreamScript>): Promise<void> {
    Object.assign(this.#script, changes)
    await this.#send(changes)
  }

  /** All that it saw so far, in order, in all of its lives; requests that warmed the proxy up left out. */
  seen (): Seen[] {
    if (!existsSync(this.#record)) return []
    // A last line without its end belongs to a write that a kill has cut.
    return readFileSync(this.#record, 'latin1').split('\n').slice(0, -1).flatMap(line => {
      const [sign = '', at, id = ''] = line.split(' ')
      return id.startsWith(warmPrefix) ? [] : [{ what: meanings[sign] as Seen['what'], at: Number(at), id }]
    })
  }

  #send (changes: Partial<UpstreamScript>): Promise<void> {
    return new Promise((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port: this.port, path: controlPath, method: 'POST', agent: false, timeout: 5000 }, response => {
        response.resume()
        response.once('end', resolve)
        response.once('error', reject)
      })
      sent.once('timeout', () => sent.destroy(new Error('no answer within 5 s')))
      sent.once('error', reject)
      sent.end(JSON.stringify(changes))
    })
  }
}
