import type { Socket } from 'node:net'
import { buildConnector } from 'undici'
import { Check, type Checker, type Subject, type Verdict } from './checker.ts'

/** How long an upstream may take to close its side, in ms. */
const partingMs = 1000

/**
 * Checks one upstream by making a connection, and with TLS its handshake, anew each time: no session is resumed, which would not show
 * the certificate again. Nothing is sent, and the connection is closed at once.
 */
export class TcpChecker implements Checker {
  readonly #subject: Subject
  #socket: Socket | undefined
  #check: Check | undefined
  /** Those of checks that passed, until the upstream has closed its side. */
  readonly #parting = new Set<Socket>()
  #destroyed = false

  constructor (subject: Subject) {
    this.#subject = subject
  }

  run (): Promise<Verdict> {
    this.#socket?.destroy()
    const check = new Check(this.#subject, (made) => {
      this.#check = undefined
      const socket = this.#socket
      this.#socket = undefined
      if (made && socket !== undefined) this.#part(socket)
      else socket?.destroy()
    })
    this.#check = check
    if (this.#destroyed) check.end('stopped', false)
    else this.#connect(check)
    return check.verdict
  }

  destroy (): void {
    this.#destroyed = true
    this.#check?.end('stopped', false)
    this.#socket?.destroy()
    for (const socket of this.#parting) socket.destroy()
  }

  #connect (check: Check): void {
    const { settings, target: { origin, host } } = this.#subject
    const { protocol, hostname, port } = new URL(origin)
    try {
      const connect = buildConnector({ ...settings, timeout: 0, maxCachedSessions: 0 })
      const options = { protocol, hostname: hostname.replace(/^\[(.*)\]$/, '$1'), host, port }
      this.#socket = connect(options, (...[error]) => {
        if (error === null) check.end('check_passed', true)
        else check.fail(error, 'connect')
      }) as unknown as Socket
    } catch (error) {
      check.fail(error as Error, 'connect')
    }
  }

  /**
   * Closes a connection in order, so that the upstream has our end of the handshake, too: it would log a broken one. What it has sent
   * by then (tickets, a banner) is read, as a connection that is let go of with bytes unread is reset, and the reset overtakes the rest.
   */
  #part (socket: Socket): void {
    this.#parting.add(socket)
    const timer = setTimeout(() => { socket.destroy() }, partingMs).unref()
    socket.on('error', () => {}).once('close', () => {
      clearTimeout(timer)
      this.#parting.delete(socket)
    })
    socket.resume().end()
  }
}
