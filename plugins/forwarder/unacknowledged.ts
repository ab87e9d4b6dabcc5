import { readFile } from 'node:fs'
import type { Socket } from 'node:net'
import { endianness } from 'node:os'
import { connectionName, unacknowledged, type Ends } from '../../lib/tcp-table.ts'

type Asker = [name: string, answer: (bytes: number) => void]

/** From one reading to the next, in ms: as many times as long as a reading takes, within bounds. */
const gapFactor = 5
const leastGapMs = 50
const mostGapMs = 1000

/** A table longer than this, in characters, has some 50,000 connections: it is left alone for so long, in ms. */
const maxLength = 8 * 1024 * 1024
const tooLongMs = 60000

/** One of the system's tables, which is read once for all who ask meanwhile. */
class Table {
  readonly #path: string
  #askers: Asker[] = []
  #busy = false
  #tooLongUntil = 0

  constructor (path: string) { this.#path = path }

  ask (asker: Asker): void {
    if (performance.now() < this.#tooLongUntil) return asker[1](-1)
    this.#askers.push(asker)
    if (!this.#busy) this.#read()
  }

  #read (): void {
    this.#busy = true
    const askers = this.#askers
    this.#askers = []
    const begun = performance.now()
    readFile(this.#path, 'latin1', (error, text) => {
      const now = performance.now()
      if (error === null && text.length > maxLength) this.#tooLongUntil = now + tooLongMs
      setTimeout(() => { this.#next() }, Math.min(mostGapMs, Math.max(leastGapMs, (now - begun) * gapFactor))).unref()
      for (const [name, answer] of askers) answer(error === null ? unacknowledged(text, name) : -1)
    })
  }

  #next (): void {
    this.#busy = false
    if (this.#askers.length > 0) this.#read()
  }
}

const linux = process.platform === 'linux'
const tables = { IPv4: new Table('/proc/net/tcp'), IPv6: new Table('/proc/net/tcp6') }
const littleEndian = endianness() === 'LE'

/**
 * Asks the system how many bytes it has taken from us that the other end of a connection has not. The answer comes later, or at
 * once; -1: the system does not tell.
 */
export function askUnacknowledged (socket: Socket, answer: (bytes: number) => void): void {
  const { localAddress, localPort, remoteAddress, remotePort, remoteFamily } = socket
  const table = tables[remoteFamily as keyof typeof tables] as Table | undefined
  if (!linux || table === undefined || localAddress === undefined || localPort === undefined || remoteAddress === undefined || remotePort === undefined) return answer(-1)
  const ends: Ends = { localAddress, localPort, remoteAddress, remotePort }
  table.ask([connectionName(ends, littleEndian), answer])
}
