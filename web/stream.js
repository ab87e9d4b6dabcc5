/** The journal as it comes: server-sent events over fetch, with reconnection from the last event that is known. */
import { openStream } from './api.js'

/** The proxy sends a comment every 15 s; when nothing at all comes for longer, the connection is dead. */
const silenceMs = 40000
const firstRetryMs = 500
const lastRetryMs = 15000

export class EventStream {
  #lastId = 0
  #run = null
  #retryMs = firstRetryMs
  #timer = 0
  #control = null
  #handlers

  /** @param handlers `event(event)`, `state('open' | 'waiting' | 'absent' | 'refused')` */
  constructor (handlers) {
    this.#handlers = handlers
  }

  /** Connects, or connects at once where it waits to. */
  start () {
    if (this.#control !== null) return
    clearTimeout(this.#timer)
    void this.#connect()
  }

  stop () {
    clearTimeout(this.#timer)
    const control = this.#control
    this.#control = null
    control?.abort()
  }

  async #connect () {
    const control = this.#control = new AbortController()
    try {
      const response = await openStream(this.#lastId, control.signal)
      if (response.status === 404) return this.#handlers.state('absent')
      if (response.status === 401) return this.#handlers.state('refused')
      if (!response.ok) throw new Error(response.statusText)
      this.#handlers.state('open')
      await this.#read(response.body.getReader(), control)
    } catch {
      // Whatever broke it: it is tried again.
    }
    if (this.#control !== control) return
    this.#control = null
    this.#handlers.state('waiting')
    this.#timer = setTimeout(() => { this.start() }, this.#retryMs * (0.75 + Math.random() / 2))
    this.#retryMs = Math.min(lastRetryMs, this.#retryMs * 2)
  }

  async #read (reader, control) {
    const decoder = new TextDecoder()
    let text = ''
    for (;;) {
      const dead = setTimeout(() => { control.abort() }, silenceMs)
      const { done, value } = await reader.read().finally(() => { clearTimeout(dead) })
      if (done) return
      this.#retryMs = firstRetryMs
      text += decoder.decode(value, { stream: true })
      const frames = text.split('\n\n')
      text = frames.pop()
      for (const frame of frames) if (this.#control === control) this.#take(frame)
    }
  }

  #take (frame) {
    const field = (name) => frame.split('\n').filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trim()).join('\n')
    const data = field('data')
    if (data === '') return
    const told = JSON.parse(data)
    if (field('event') === 'stream') return this.#greet(told)
    this.#lastId = told.seq
    this.#handlers.event(told)
  }

  /** Another run of the proxy numbers its events anew. Where it could not see that, it is asked again for all of them. */
  #greet ({ run, restarted }) {
    const another = this.#run !== null && this.#run !== run
    this.#run = run
    if (!another || restarted) return
    this.#lastId = 0
    this.stop()
    this.start()
  }
}
