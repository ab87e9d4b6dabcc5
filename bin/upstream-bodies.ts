/** A body: its length in bytes where that is known, and its pieces in order. */
export interface Body {
  length: number | null
  pieces: Iterable<Buffer> | AsyncIterable<Buffer>
}

/** How many pieces a dripped body has (fewer when it has fewer bytes). */
const drips = 8
/** 251 is prime: a lost, doubled or swapped block of a power of two never goes unnoticed. */
const period = 251
const block = Buffer.alloc(period * 256, Buffer.from(Array.from({ length: period }, (_, index) => index)))

function * slices (body: Buffer, size: number): Generator<Buffer> {
  for (let at = 0; at < body.length; at += size) yield body.subarray(at, at + size)
}

/** A body in one piece, or in eight when it is to be dripped. */
export function wholeBody (body: Buffer, dripped: boolean): Body {
  return { length: body.length, pieces: dripped ? slices(body, Math.max(1, Math.ceil(body.length / drips))) : [body] }
}

/** Byte `index` of every `/bytes/N` and `--body-bytes` body. */
export function patternByte (index: number): number {
  return index % period
}

/** `length` bytes of known content (see `patternByte`), made as they are sent: any length needs the same memory. */
export function patternBody (length: number, dripped: boolean): Body {
  const wanted = dripped ? Math.max(1, Math.ceil(length / drips)) : block.length
  // A piece that starts at a multiple of the period is a prefix of the block.
  const size = Math.min(block.length, Math.ceil(wanted / period) * period)
  return { length, pieces: pattern(length, size) }
}

function * pattern (length: number, size: number): Generator<Buffer> {
  for (let at = 0; at < length; at += size) yield block.subarray(0, Math.min(size, length - at))
}

/** Server-sent events without an end; `wait` is called between two of them. */
export function eventsBody (name: string, wait: () => Promise<void>): Body {
  return { length: null, pieces: events(name, wait) }
}

async function * events (name: string, wait: () => Promise<void>): AsyncGenerator<Buffer> {
  for (let id = 1; ; id++) {
    yield Buffer.from(`id: ${id}\ndata: ${JSON.stringify({ upstream: name, id })}\n\n`)
    await wait()
  }
}
