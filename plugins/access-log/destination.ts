import { fstatSync, write, writeSync } from 'node:fs'

/** Bytes that are gathered before they are written. */
const enoughBytes = 65536
/** How long less than that waits, in ms. */
const waitMs = 100
/** How long a write that failed waits for its next try, in ms. */
const retryMs = 250
/** How long the exit may be held up by lines that nobody takes, in ms. */
const exitMs = 1000

/**
 * Where the log goes: gathered, written without blocking, flushed when the process exits. Made for the hour in which the log's
 * reader is gone or stands still, or its disk is full: then what waits is bounded, what does not fit is dropped and counted, the
 * proxy goes on serving, and it still ends when it is told to.
 */
export class LogDestination {
  readonly #fd: number
  readonly #maxBytes: number
  #waiting = ''
  /** What the system has been asked to write and has not taken yet. */
  #pending: Buffer | null = null
  #busy = false
  #gone = false
  #dropped = 0
  #timer: NodeJS.Timeout | null = null
  readonly #onExit = (): void => { this.flushSync() }

  /**
   * @param fd an open descriptor; a pipe is set non-blocking, as a reader that stands still would hold a thread of ours, and with it the exit
   * @param maxBytes what may wait; more is dropped
   */
  constructor (fd: number, maxBytes: number) {
    this.#fd = fd
    this.#maxBytes = maxBytes
    if (fd === 1 && isPipe(fd)) void process.stdout
    process.on('exit', this.#onExit)
  }

  /** Lines that were dropped and not told of yet. */
  get dropped (): number { return this.#dropped }

  /** Takes whole lines. Never throws, never waits. */
  write (lines: string): void {
    if (this.#gone) return
    if (this.#waiting.length + (this.#pending?.length ?? 0) + lines.length > this.#maxBytes) {
      this.#dropped++
      return
    }
    this.#waiting += lines
    if (this.#waiting.length >= enoughBytes) this.#next()
    else this.#later(waitMs)
  }

  /** Writes what waits, at the exit: no longer than a second, and only as far as the system takes it. */
  flushSync (): void {
    let rest = Buffer.from(this.#take())
    // A write that is under way ends by itself; its rest cannot be known here.
    if (!this.#busy && this.#pending !== null) {
      rest = Buffer.concat([this.#pending, rest])
      this.#pending = null
    }
    const until = performance.now() + exitMs
    while (rest.length > 0 && !this.#gone && performance.now() < until) {
      try {
        rest = rest.subarray(writeSync(this.#fd, rest))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
        pause(10)
      }
    }
  }

  /** Writes what waits and lets go of the process. The descriptor stays open. */
  close (): void {
    this.flushSync()
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#gone = true
    process.removeListener('exit', this.#onExit)
  }

  #take (): string {
    const lines = this.#waiting
    this.#waiting = ''
    return lines
  }

  #later (ms: number): void {
    if (this.#timer !== null || this.#busy) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.#next()
    }, ms)
    this.#timer.unref()
  }

  #next (): void {
    if (this.#busy || this.#gone) return
    if (this.#pending === null) {
      if (this.#waiting === '') return
      this.#pending = Buffer.from(this.#take())
    }
    this.#busy = true
    write(this.#fd, this.#pending, (error, written) => {
      this.#busy = false
      if (error !== null) this.#failed(error)
      else this.#took(written)
    })
  }

  #took (bytes: number): void {
    const pending = this.#pending as Buffer
    this.#pending = bytes < pending.length ? pending.subarray(bytes) : null
    if (this.#pending === null && this.#dropped > 0) this.#tellDropped()
    if (this.#pending !== null || this.#waiting.length >= enoughBytes) this.#next()
    else if (this.#waiting !== '') this.#later(waitMs)
  }

  #failed (error: NodeJS.ErrnoException): void {
    if (error.code === 'EPIPE' || error.code === 'EBADF') {
      // Nobody will ever read it.
      this.#gone = true
      this.#pending = null
      this.#waiting = ''
      return
    }
    this.#later(retryMs)
  }

  #tellDropped (): void {
    const count = this.#dropped
    this.#dropped = 0
    this.write(`${JSON.stringify({ level: 40, time: Date.now(), msg: 'log_lines_dropped', count })}\n`)
  }
}

function isPipe (fd: number): boolean {
  try {
    const stat = fstatSync(fd)
    return stat.isFIFO() || stat.isSocket()
  } catch {
    return false
  }
}

function pause (ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
