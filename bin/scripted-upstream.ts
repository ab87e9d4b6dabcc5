import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { seededRandom } from '../lib/random.ts'
import { eventsBody, patternBody, wholeBody } from './upstream-bodies.ts'
import type { Body } from './upstream-bodies.ts'
import { DrillHold, drillPath, drillTime, upstreamMark, type DrillTarget } from './upstream-drill.ts'
import { drained, isLocal, pause, read } from './upstream-io.ts'
import { Listening } from './upstream-listening.ts'
import { UpstreamOptionError, checkUpstreamOptions, upstreamDefaults } from './upstream-options.ts'
import type { UpstreamChanges, UpstreamOptions, UpstreamSettings } from './upstream-options.ts'

/** What a scripted upstream has seen and done since it started. Health checks and its own control paths count as no requests. */
export interface UpstreamStats {
  name: string
  requests: number
  inFlight: number
  healthChecks: number
  connections: number
  openConnections: number
  /** Requests whose connection the peer closed before the answer was complete. */
  aborted: number
  failed: number
  truncated: number
  reset: number
  hung: number
}

export interface ScriptedUpstream {
  readonly port: number
  readonly host: string
  readonly url: string
  readonly name: string
  /** Changes faults from the next request on. Throws an UpstreamOptionError, and then changes nothing. */
  set (changes: UpstreamChanges): void
  stats (): UpstreamStats
  /** Stops listening and cuts every open connection. May be called again. */
  close (): Promise<void>
}

type Fields = Array<[string, string]>

const maxControlBytes = 65536
const eventIntervalMs = 200
const json: Fields = [['content-type', 'application/json']]
const octets: Fields = [['content-type', 'application/octet-stream']]

/**
 * Starts an HTTP server whose faults are scripted and can be changed while it runs. What it answers and every option are
 * told by `breakwater upstream --help`. Chance is seeded: the same seed and the same order of requests give the same faults.
 * @throws UpstreamOptionError for unusable options, or the system's error when it cannot listen
 */
export async function startUpstream (options: UpstreamOptions = {}): Promise<ScriptedUpstream> {
  const script = new Script({ ...upstreamDefaults, ...checkUpstreamOptions(options, 'all') })
  const { settings } = script
  const server = createServer({ keepAliveTimeout: settings.keepAliveMs, requestTimeout: 0 }, (request, response) => script.serve(request, response))
  const sockets = new Set<Socket>()
  server.on('connection', socket => {
    script.counts.connections++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  script.openConnections = () => sockets.size
  server.listen(settings.port, settings.host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const listening = new Listening(server, sockets, port, settings.host)
  script.setDead = dead => listening.setDead(dead)
  return {
    port,
    host: settings.host,
    url: `http://${settings.host.includes(':') ? `[${settings.host}]` : settings.host}:${port}`,
    name: settings.name,
    set: changes => script.set(changes),
    stats: () => script.stats(),
    async close () {
      script.endDrill()
      await listening.close()
    }
  }
}

class Script implements DrillTarget {
  /** What it was told to do, and what a drill has laid over it; together they are what it does. */
  readonly #own: UpstreamSettings
  #overlay: UpstreamChanges = {}
  #drill: DrillHold | null = null
  settings: UpstreamSettings
  setDead: (dead: boolean) => void = () => {}
  readonly counts = { requests: 0, inFlight: 0, healthChecks: 0, connections: 0, aborted: 0, failed: 0, truncated: 0, reset: 0, hung: 0 }
  openConnections: () => number = () => 0
  readonly #random: () => number
  /** Answers that we cut ourselves: their early end is not the peer's doing. */
  readonly #cutByUs = new WeakSet<ServerResponse>()

  constructor (settings: UpstreamSettings) {
    this.#own = settings
    this.settings = { ...settings }
    this.#random = seededRandom(settings.seed)
  }

  set (changes: UpstreamChanges): void {
    Object.assign(this.#own, checkUpstreamOptions(changes, 'live'))
    this.settings = { ...this.#own, ...this.#overlay }
  }

  overlay (faults: UpstreamChanges | null): void {
    this.#overlay = faults ?? {}
    this.settings = { ...this.#own, ...this.#overlay }
  }

  endDrill (): void {
    this.#drill?.end()
  }

  stats (): UpstreamStats {
    return { name: this.settings.name, ...this.counts, openConnections: this.openConnections() }
  }

  serve (request: IncomingMessage, response: ServerResponse): void {
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/'
    const served = path === '/__stats' || path === '/__control' || path === drillPath
      ? this.#control(path, request, response)
      : path === this.settings.healthPath ? this.#health(request, response) : this.#answer(path, request, response)
    served.catch((error: unknown) => {
      if (request.socket.destroyed) return
      if (response.headersSent) request.socket.destroy()
      else this.#sendJson(response, 500, { error: (error as Error).message })
    })
  }

  async #health (request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.counts.healthChecks++
    request.resume()
    if (this.settings.hangHealth) return
    const { name, refuseHealth } = this.settings
    this.#sendJson(response, refuseHealth ? 503 : 200, { upstream: name, status: refuseHealth ? 'refused' : 'ok' })
  }

  async #control (path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (path === '/__stats') {
      request.resume()
      response.setHeader('server', upstreamMark)
      return this.#sendJson(response, 200, this.stats())
    }
    if (!isLocal(request)) {
      request.resume()
      return this.#sendJson(response, 403, { error: 'control is for direct calls from this machine' })
    }
    if (request.method !== 'POST') {
      request.resume()
      return this.#sendJson(response, 405, { error: 'control wants POST' })
    }
    const body: Buffer[] = []
    const bytes = await read(request, piece => body.push(piece), maxControlBytes)
    if (bytes > maxControlBytes) return this.#sendJson(response, 413, { error: `control takes ${maxControlBytes} bytes at most` })
    try {
      const told: unknown = JSON.parse(Buffer.concat(body).toString())
      if (path === drillPath) return await this.#beginDrill(drillTime(told), response)
      this.set(told as UpstreamChanges)
    } catch (error) {
      return this.#sendJson(response, 400, { errors: error instanceof UpstreamOptionError ? error.problems : [(error as Error).message] })
    }
    this.#sendJson(response, 200, this.settings)
  }

  async #beginDrill (ttlMs: number, response: ServerResponse): Promise<void> {
    if (this.#drill !== null) return this.#sendJson(response, 409, { error: 'another drill has it' })
    const drill = new DrillHold(this, ttlMs, () => { this.#drill = null })
    this.#drill = drill
    try {
      this.#sendJson(response, 201, { control: await drill.open() })
    } catch (error) {
      drill.end()
      throw error
    }
  }

  async #answer (path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { settings, counts } = this
    const count = ++counts.requests
    counts.inFlight++
    response.once('close', () => {
      counts.inFlight--
      if (!response.writableFinished && !this.#cutByUs.has(response)) counts.aborted++
    })
    // Both are drawn for every request, so that changing one fault does not shift the chances of another.
    const failDraw = this.#random()
    const jitterDraw = this.#random()
    const [, route = '', argument = ''] = /^\/(bytes|status|slow)\/([0-9]{1,15})$/.exec(path) ?? ['', path.slice(1)]
    const number = Number(argument)

    if (settings.hang || route === 'hang') {
      counts.hung++
      request.resume()
      return
    }
    const bodyBytes = route === 'echo' ? 0 : await read(request)
    await pause(request, settings.delayMs + jitterDraw * settings.jitterMs + (route === 'slow' ? number : 0))
    if (request.socket.destroyed) return
    if (isNth(count, settings.resetEvery) || route === 'reset') {
      counts.reset++
      this.#cutByUs.add(response)
      request.socket.resetAndDestroy()
      return
    }
    const cut = isNth(count, settings.truncateEvery) || route === 'cut'
    const dripped = settings.slowBodyMs > 0
    const send = (status: number, fields: Fields, body: Body) => this.#send(request, response, status, fields, body, cut)
    const sendText = (status: number, value: unknown) => send(status, json, wholeBody(Buffer.from(`${JSON.stringify(value)}\n`), dripped))

    if (isNth(count, settings.failEvery) || failDraw < settings.failRatio) {
      counts.failed++
      request.resume()
      return sendText(settings.failStatus, { upstream: settings.name, error: 'scripted failure', count })
    }
    if (route === 'echo') {
      const { 'content-type': type, 'content-length': length } = request.headers
      return send(settings.status, type === undefined ? [] : [['content-type', type]], {
        length: length === undefined ? null : Number(length),
        // Leaving the loop early must not destroy the connection before what was written is out.
        pieces: request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>
      })
    }
    if (route === 'sse') return send(settings.status, [['content-type', 'text/event-stream'], ['cache-control', 'no-store']], eventsBody(settings.name, () => pause(request, eventIntervalMs)))
    if (route === 'bytes') return send(settings.status, octets, patternBody(number, dripped))
    if (route === 'status' && (number < 200 || number > 999)) return sendText(400, { error: '/status/NNN wants 200 to 999' })
    if (settings.bodyBytes !== null) return send(route === 'status' ? number : settings.status, octets, patternBody(settings.bodyBytes, dripped))
    const { method, url, headers } = request
    return sendText(route === 'status' ? number : settings.status, { upstream: settings.name, method, url, headers, bodyBytes, count })
  }

  async #send (request: IncomingMessage, response: ServerResponse, status: number, fields: Fields, body: Body, cut: boolean): Promise<void> {
    const empty = status === 204 || status === 304
    const framing: Fields = empty || body.length === null ? [] : [['content-length', String(body.length)]]
    response.writeHead(status, this.#fields(empty ? [] : [...fields, ...framing]))
    if (empty || request.method === 'HEAD') {
      request.resume()
      response.end()
      return
    }
    // A body without a known length is cut within its first piece.
    let untilCut = cut && body.length !== null ? Math.floor(body.length / 2) : Infinity
    if (body.length === null || this.settings.slowBodyMs > 0) response.flushHeaders()
    for await (const piece of body.pieces) {
      await pause(request, this.settings.slowBodyMs)
      if (request.socket.destroyed) return
      if (cut && untilCut === Infinity) untilCut = Math.floor(piece.length / 2)
      if (piece.length < untilCut) {
        untilCut -= piece.length
        if (!response.write(piece)) await drained(request, response)
      } else {
        this.counts.truncated++
        this.#cutByUs.add(response)
        response.write(piece.subarray(0, untilCut), () => request.socket.destroySoon())
        return
      }
    }
    response.end()
  }

  #sendJson (response: ServerResponse, status: number, value: unknown): void {
    const body = Buffer.from(`${JSON.stringify(value)}\n`)
    const close: Fields = this.settings.close ? [['connection', 'close']] : []
    response.writeHead(status, [...json, ['content-length', String(body.length)], ...close].flat())
    response.end(body)
  }

  /** Our own fields, less those that the script names itself, then the script's: a wrong Content-Length is a fault too. */
  #fields (own: Fields): string[] {
    const { headers, close } = this.settings
    const named = new Set(headers.map(([name]) => name.toLowerCase()))
    const kept = own.filter(([name]) => !named.has(name))
    return [...kept, ...headers, ...(close ? [['connection', 'close']] : [])].flat()
  }
}

function isNth (count: number, every: number): boolean {
  return every > 0 && count % every === 0
}
