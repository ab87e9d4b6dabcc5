import { connect, type Socket } from 'node:net'

/** How a request ended: its status and how the connection went on; `failure` where no whole answer came. */
export interface Ending {
  /** 0: none came. */
  status: number
  failure: '' | 'connect' | 'cut' | 'invalid' | 'timeout'
  /** What the proxy's Proxy-Status (RFC 9209) gives as its reason; '' where there is none. */
  reason: string
}

/** How the rest of an answer is framed: so many bytes; until the last chunk; until the connection ends. */
type Framing = number | 'chunked' | 'close'

/**
 * One connection of the load client, with one request at a time. It never sends anything twice, whatever happens, and takes no
 * more of an answer apart than it must: it is there to see what comes, and to cost little.
 */
export class Connection {
  readonly #socket: Socket
  #connected = false
  #text = ''
  #end: ((ending: Ending) => void) | null = null
  /** False once it can take no further request. */
  usable = true

  constructor (port: number, host = '127.0.0.1') {
    this.#socket = connect({ port, host, noDelay: true })
    // One character for each byte.
    this.#socket.setEncoding('latin1')
    this.#socket.on('connect', () => { this.#connected = true })
    this.#socket.on('data', (text: unknown) => this.#read(text as string))
    this.#socket.on('error', () => {})
    this.#socket.on('close', () => this.#closed())
  }

  /** Sends a request; `end` is called once. Only while it is usable, and not before the one before has ended. */
  send (request: string, end: (ending: Ending) => void): void {
    this.#end = end
    this.#text = ''
    this.#socket.write(request, 'latin1')
  }

  /** Gives the request up that is under way, if there is one. */
  destroy (failure: Ending['failure']): void {
    this.#finish({ status: 0, failure, reason: '' }, false)
    this.#socket.destroy()
  }

  #read (text: string): void {
    // What comes unasked, such as a 408 to nobody, ends the connection.
    if (this.#end === null) return this.destroy('invalid')
    this.#text += text
    const head = this.#text.indexOf('\r\n\r\n')
    if (head === -1) return
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(this.#text)?.[1] ?? 0)
    if (status < 200) return this.destroy('invalid')
    const fields = this.#text.slice(0, head).toLowerCase()
    const framing = framingOf(fields, status)
    if (!isWhole(framing, this.#text, head + 4)) return
    this.#finish({ status, failure: '', reason: reasonOf(fields, status) }, !/\r\nconnection:[^\r]*\bclose\b/.test(fields) && !fields.startsWith('http/1.0'))
  }

  #closed (): void {
    this.usable = false
    const head = this.#text.indexOf('\r\n\r\n')
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(this.#text)?.[1] ?? 0)
    const untilClose = head !== -1 && framingOf(this.#text.slice(0, head).toLowerCase(), status) === 'close'
    this.#finish(untilClose ? { status, failure: '', reason: '' } : { status: 0, failure: this.#connected ? 'cut' : 'connect', reason: '' }, false)
  }

  #finish (ending: Ending, kept: boolean): void {
    const end = this.#end
    this.#end = null
    this.usable &&= kept
    if (!this.usable) this.#socket.destroy()
    end?.(ending)
  }
}

const reasonOf = (fields: string, status: number): string => status < 400 ? '' : /\r\nproxy-status:[^\r]*\bdetails="?(\w+)/.exec(fields)?.[1] ?? ''

function framingOf (fields: string, status: number): Framing {
  if (status === 204 || status === 304) return 0
  if (/\r\ntransfer-encoding:[^\r]*\bchunked\b/.test(fields)) return 'chunked'
  const length = /\r\ncontent-length:\s*(\d+)/.exec(fields)?.[1]
  return length === undefined ? 'close' : Number(length)
}

function isWhole (framing: Framing, text: string, from: number): boolean {
  if (framing === 'close') return false
  return framing === 'chunked' ? text.endsWith('0\r\n\r\n') : text.length - from >= framing
}
