import { createHash } from 'node:crypto'
import { watch, type FSWatcher } from 'node:fs'
import { constants, open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

export interface FileWatchOptions {
  /** The longest time between two looks, in ms: for file systems that tell nothing, and for what happens elsewhere, behind a symlink. */
  pollMs: number
  /** What the caller has read already: the first look tells only what differs from it. Left out: the first content is told. */
  known?: Uint8Array | undefined
  /** The file has another content than was told last. Must not throw. */
  onChange: (content: Buffer) => void
  /** The file cannot be read; told once until that changes. It is still watched. Must not throw. */
  onError: (error: NodeJS.ErrnoException) => void
  /** The file was read, and has the content that was told last. Must not throw. */
  onSame?: () => void
}

/** Far above any real file of options. */
const maxBytes = 1_048_576

/** How long after a sign of a change the file is looked at, and how long a new content must last before it counts. */
const settleMs = 50

/** A file that is never the same at two looks is taken as it is at this one. */
const maxRestless = 20

/**
 * Calls `onChange` when the content of a file changes, however that is done: written in place, renamed over, as editors do it, or
 * by a symlink that is swapped, as Kubernetes updates a ConfigMap. It need not be there. A new content counts when a second look
 * finds it again, so that a file that is just being written, or is away for a moment, is nobody's news; the first content counts
 * at once. The folder is watched, not the file, as a watched file that is renamed over is silent; and at the latest every
 * `pollMs` the content is compared. Keeps no process alive.
 * @returns a function that ends it, behind which nothing is told any more
 */
export function watchFile (path: string, options: FileWatchOptions): () => void {
  const watching = new FileWatch(path, options)
  watching.look()
  return () => { watching.close() }
}

/** What one look found: a content or an error, and a text that is the same for the same one. */
type Finding = { key: string, content: Buffer } | { key: string, error: NodeJS.ErrnoException }

class FileWatch {
  readonly #path: string
  readonly #folder: string
  readonly #options: FileWatchOptions
  #watcher: FSWatcher | undefined
  /** Which folder the watcher watches: one of the same name may have taken its place. */
  #watched = ''
  #timer: NodeJS.Timeout | undefined
  #due = Infinity
  #looking = false
  #closed = false
  /** Key of the content that was told last. */
  #told: string | null
  /** Key of the error that was told, while it lasts. */
  #toldError: string | null = null
  /** Key of what the last look found, if it is not what was told. */
  #candidate: string | null = null
  #restless = 0

  constructor (path: string, options: FileWatchOptions) {
    this.#path = path
    this.#folder = dirname(path)
    this.#options = options
    this.#told = options.known === undefined ? null : keyOf(options.known)
  }

  close (): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#watcher?.close()
  }

  look (): void {
    this.#due = Infinity
    this.#looking = true
    this.#lookOnce().finally(() => {
      this.#looking = false
      if (!this.#closed) this.#arm(Math.min(this.#due - performance.now(), this.#options.pollMs))
    })
  }

  async #lookOnce (): Promise<void> {
    // Before the file is read, so that what happens meanwhile is seen.
    await this.#watchFolder()
    const finding = await read(this.#path)
    if (!this.#closed) this.#judge(finding)
  }

  #judge (finding: Finding): void {
    const { key } = finding
    if (key === this.#told) {
      this.#settle()
      this.#toldError = null
      this.#options.onSame?.()
    } else if (key === this.#toldError) {
      this.#settle()
    } else if (key === this.#candidate || this.#restless === maxRestless || (this.#told === null && 'content' in finding)) {
      this.#settle()
      this.#tell(finding)
    } else {
      this.#candidate = key
      this.#restless++
      this.#lookIn(settleMs)
    }
  }

  #settle (): void {
    this.#candidate = null
    this.#restless = 0
  }

  #tell (finding: Finding): void {
    if ('error' in finding) {
      this.#toldError = finding.key
      this.#options.onError(finding.error)
    } else {
      this.#toldError = null
      this.#told = finding.key
      this.#options.onChange(finding.content)
    }
  }

  /** A look in `ms`, if none comes sooner. */
  #lookIn (ms: number): void {
    const due = performance.now() + ms
    if (this.#closed || due >= this.#due) return
    this.#due = due
    if (!this.#looking) this.#arm(ms)
  }

  #arm (ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => { this.look() }, Math.max(ms, 0))
    this.#timer.unref()
  }

  async #watchFolder (): Promise<void> {
    let folder = ''
    try {
      const { dev, ino } = await stat(this.#folder)
      folder = `${dev}:${ino}`
    } catch {
      // It is not there, and the read will say so.
    }
    if (this.#closed || (folder === this.#watched && this.#watcher !== undefined)) return
    this.#unwatch()
    if (folder === '') return
    try {
      const watcher = watch(this.#folder, { persistent: false }, () => { this.#lookIn(settleMs) })
      watcher.on('error', () => { if (this.#watcher === watcher) this.#unwatch() })
      this.#watcher = watcher
      this.#watched = folder
    } catch {
      // The system has no watches left, or the file system none at all: then there is the poll.
    }
  }

  #unwatch (): void {
    this.#watcher?.close()
    this.#watcher = undefined
  }
}

const keyOf = (content: Uint8Array): string => createHash('sha256').update(content).digest('base64')

async function read (path: string): Promise<Finding> {
  try {
    const content = await readBounded(path)
    return { key: keyOf(content), content }
  } catch (error) {
    return { key: `error ${(error as NodeJS.ErrnoException).code ?? String(error)}`, error: error as NodeJS.ErrnoException }
  }
}

async function readBounded (path: string): Promise<Buffer> {
  // Without O_NONBLOCK the open of a pipe would wait for somebody who writes, and hold a thread meanwhile.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const status = await file.stat()
    if (!status.isFile()) throw refusal(path, 'EINVAL', 'it is no regular file')
    // The size is a guess: the file may grow, and those of the kernel have none.
    let bytes = Buffer.alloc(Math.min(status.size, maxBytes) + 1)
    let length = 0
    for (;;) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length, null)
      if (bytesRead === 0) break
      length += bytesRead
      if (length > maxBytes) throw refusal(path, 'EFBIG', `it has more than ${maxBytes} bytes`)
      if (length === bytes.length) bytes = Buffer.concat([bytes], Math.min(bytes.length * 2, maxBytes + 1))
    }
    return bytes.subarray(0, length)
  } finally {
    await file.close()
  }
}

const refusal = (path: string, code: string, why: string): NodeJS.ErrnoException => Object.assign(new Error(`${code}: ${why}, read '${path}'`), { code })
