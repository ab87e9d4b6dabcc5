import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { built, type Child, type Workshop } from '../children.ts'
import { steadyPorts } from './ports.ts'

/** A configuration of Breakwater, as a file has it, but for its admin port. */
export type DrillConfig = Record<string, unknown>

export interface LogLine {
  msg?: string
  [field: string]: unknown
}

/** One JSON request at the admin listener. */
function ask (port: number, method: 'GET' | 'POST', path: string): Promise<{ status: number, text: string }> {
  return new Promise((resolve, reject) => {
    const body = method === 'POST' ? '{}' : ''
    const headers = method === 'POST' ? { 'content-type': 'application/json', 'content-length': body.length } : {}
    const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false, timeout: 10_000 }, response => {
      let text = ''
      response.on('data', (piece: Buffer) => { text += piece.toString() })
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text }))
      response.once('error', reject)
    })
    sent.once('timeout', () => sent.destroy(new Error('no answer within 10 s')))
    sent.once('error', reject)
    sent.end(body)
  })
}

/** Breakwater as its users start it: the command line in a process of its own, with a configuration file. */
export class Breakwater {
  readonly port: number
  readonly child: Child
  readonly #adminPort: number
  readonly #file: string
  readonly #log: string

  private constructor (child: Child, port: number, adminPort: number, file: string, log: string) {
    this.child = child
    this.port = port
    this.#adminPort = adminPort
    this.#file = file
    this.#log = log
  }

  /** Resolves when all upstreams count as healthy. @throws when it ends, or that does not come within 20 seconds */
  static async start (workshop: Workshop, name: string, config: DrillConfig): Promise<Breakwater> {
    const [port, adminPort] = await steadyPorts(2) as [number, number]
    const folder = workshop.place(name)
    const file = join(folder, 'breakwater.json')
    const log = join(folder, 'log')
    write(file, config, adminPort)
    const child = workshop.start(name, {
      program: process.execPath,
      args: [built('bin/breakwater.js'), 'start', '-p', String(port)],
      env: { BREAKWATER_CONFIG: file },
      output: log
    })
    const proxy = new Breakwater(child, port, adminPort, file, log)
    for (const until = performance.now() + 20_000; ;) {
      const healthy = await proxy.#allHealthy().catch(() => false)
      if (healthy) return proxy
      if (child.ended() !== null || performance.now() > until) throw new Error(`${name} was not ready: ${child.ended()} ${child.complaint()} ${readFileSync(log, 'utf8').slice(-2000)}`)
      await sleep(25)
    }
  }

  async #allHealthy (): Promise<boolean> {
    const { text } = await ask(this.#adminPort, 'GET', '/health')
    return (JSON.parse(text) as { upstreams: Array<{ healthy: boolean }> }).upstreams.every(({ healthy }) => healthy)
  }

  /** Writes another configuration in the place of the one before, and lets it be read. Returns the status of that. */
  async reload (config: DrillConfig): Promise<number> {
    write(this.#file, config, this.#adminPort)
    return (await ask(this.#adminPort, 'POST', '/config/reload')).status
  }

  /** Resolves when what it has logged is in its file: it gathers lines for 100 ms. */
  async logged (): Promise<void> {
    await sleep(300)
  }

  /** What it logged so far. */
  lines (): LogLine[] {
    return readFileSync(this.#log, 'utf8').split('\n').slice(0, -1).flatMap(line => {
      try {
        return [JSON.parse(line) as LogLine]
      } catch {
        return [] // no line of ours
      }
    })
  }

  /** Throws where it has ended: then no figure means anything. */
  mustRun (): void {
    const ended = this.child.ended()
    if (ended !== null) throw new Error(`the proxy ended (${ended}): ${this.child.complaint()}`)
  }

  /** The reasons in its access lines, the most frequent one first: `12 x headers_timeout`. */
  reasons (): string {
    const counts = new Map<string, number>()
    for (const { msg, reason } of this.lines()) {
      if (msg === 'access' && typeof reason === 'string') counts.set(reason, (counts.get(reason) ?? 0) + 1)
    }
    return [...counts].toSorted(([, a], [, b]) => b - a).map(([reason, count]) => `${count} x ${reason}`).join(', ') || 'none'
  }

  /** When each circuit opened, and why: `stall after 620 ms`, counted from `from` (ms since 1970). */
  openings (from: number): string[] {
    return this.lines().filter(line => line.msg === 'breaker_transition' && line['to'] === 'open')
      .map(line => `${String(line['cause'])} after ${Math.round(Number(line['time']) - from)} ms`)
  }
}

/** By a rename, so that nobody reads half of it. */
function write (file: string, config: DrillConfig, adminPort: number): void {
  writeFileSync(`${file}.new`, JSON.stringify({ ...config, admin: { port: adminPort } }, null, 2))
  renameSync(`${file}.new`, file)
}
