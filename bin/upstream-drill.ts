import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isLocal, read } from './upstream-io.ts'
import { UpstreamOptionError, checkUpstreamOptions, type UpstreamChanges } from './upstream-options.ts'

/** The path at which a scripted upstream is asked for a drill, and how /__stats tells what it is. */
export const drillPath = '/__drill'
export const upstreamMark = 'breakwater-upstream'

/** Longest time that a drill may take, and for which a hold may outlive its last word, in ms. */
export const maxDrillMs = 900_000
const maxBytes = 65536

/** What an upstream lets a drill do with it. */
export interface DrillTarget {
  /** Lays faults over those that the upstream has of its own; null takes them off. @throws UpstreamOptionError */
  overlay: (faults: UpstreamChanges | null) => void
  /** Refuses connections and cuts those that are open; false: listens again, at the same port. */
  setDead: (dead: boolean) => void
  stats: () => object
}

/**
 * A drill's hold on an upstream: it ends by itself when nothing was heard from its drill for its time, and then everything is as it
 * was. It is steered through a listener of its own, which is there while the upstream itself is dead. Loopback only; the path holds a
 * random word that only who began it knows.
 */
export class DrillHold {
  readonly #target: DrillTarget
  readonly #onEnd: () => void
  readonly #server: Server
  readonly #path = `/${randomBytes(16).toString('hex')}`
  readonly #timer: NodeJS.Timeout
  #ended = false

  constructor (target: DrillTarget, ttlMs: number, onEnd: () => void) {
    this.#target = target
    this.#onEnd = onEnd
    this.#server = createServer((request, response) => { void this.#serve(request, response) })
    // Nothing else may keep the process of a dead upstream alive, and it has to come back.
    this.#timer = setTimeout(() => this.end(), ttlMs)
  }

  /** Resolves with the address through which it is steered. */
  async open (): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(0, '127.0.0.1', resolve)
    })
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${this.#path}`
  }

  /** Takes everything back. May be called again. */
  end (): void {
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#timer)
    this.#target.overlay(null)
    this.#target.setDead(false)
    this.#server.close()
    this.#onEnd()
  }

  async #serve (request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body: Buffer[] = []
    const answer = (status: number, value: object): void => {
      response.writeHead(status, { 'content-type': 'application/json', 'connection': 'close' }).end(JSON.stringify(value))
    }
    try {
      const bytes = await read(request, (piece) => body.push(piece), maxBytes)
      if (!isLocal(request) || request.url !== this.#path || this.#ended) return answer(404, { error: 'there is no drill' })
      this.#timer.refresh()
      if (bytes > maxBytes) return answer(413, { error: `at most ${maxBytes} bytes` })
      if (request.method === 'DELETE') this.end()
      else if (request.method === 'POST') this.#change(JSON.parse(Buffer.concat(body).toString()) as { faults?: UpstreamChanges, dead?: boolean })
      answer(200, this.#target.stats())
    } catch (error) {
      if (!response.headersSent) answer(400, { error: (error as Error).message })
    }
  }

  #change ({ faults = {}, dead = false }: { faults?: UpstreamChanges, dead?: boolean }): void {
    this.#target.overlay(checkUpstreamOptions(faults, 'live'))
    this.#target.setDead(dead)
  }
}

/** For how long, in ms, a drill wants an upstream from each of its words on. @throws UpstreamOptionError */
export function drillTime (body: unknown): number {
  const ttlMs = typeof body === 'object' && body !== null && 'ttlMs' in body ? body.ttlMs : undefined
  if (typeof ttlMs !== 'number' || !Number.isInteger(ttlMs) || ttlMs < 1 || ttlMs > maxDrillMs) throw new UpstreamOptionError([`ttlMs: must be a whole number from 1 to ${maxDrillMs}`])
  return ttlMs
}
