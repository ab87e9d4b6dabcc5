import { median } from './stats.ts'

/** One operation to time. */
export interface Operation {
  name: string
  /** Does the operation `count` times and returns something that depends on all of them, so that none is optimised away. */
  loop: (count: number) => number
  /** Untimed work before each batch, e.g. giving back what the batch took. With it, batches are of `batch` operations. */
  before?: (count: number) => void
}

export interface Timing {
  name: string
  /** Nanoseconds an operation: the best sample and the middle one. */
  best: number
  median: number
  /** Heap bytes an operation leaves behind, garbage included. */
  bytes: number
}

export interface Effort {
  /** Samples of each operation. */
  samples: number
  /** Timed length of a sample, in ms. */
  sampleMs: number
}

/** Operations in a batch that has untimed work before it: long enough that reading the clock twice does not count. */
export const batch = 4096

let sink = 0
/** Everything that the loops returned. Reading it keeps them alive. */
export const checksum = (): number => sink

const nanoseconds = (): number => Number(process.hrtime.bigint())

function timed (operation: Operation, count: number): number {
  operation.before?.(count)
  const started = nanoseconds()
  sink = (sink + operation.loop(count)) % 1e9
  return nanoseconds() - started
}

/** How many operations fill `ms`: doubled until they do, which also lets V8 optimise them. */
function calibrate (operation: Operation, ms: number): number {
  for (let count = 1024; ; count *= 2) {
    const took = timed(operation, count)
    if (took >= ms * 1e6 || count >= 2 ** 30) return Math.max(1024, Math.ceil(count * ms * 1e6 / Math.max(took, 1)))
  }
}

/** Nanoseconds an operation in each of `samples` samples. */
function sample (operation: Operation, { samples, sampleMs }: Effort): number[] {
  const perOperation: number[] = []
  if (operation.before === undefined) {
    calibrate(operation, sampleMs)
    const count = calibrate(operation, sampleMs)
    for (let i = 0; i < samples; i++) perOperation.push(timed(operation, count) / count)
    return perOperation
  }
  // The first sample warms up and is left out.
  for (let i = 0; i <= samples; i++) {
    let took = 0
    let batches = 0
    while (took < sampleMs * 1e6) {
      took += timed(operation, batch)
      batches++
    }
    if (i > 0) perOperation.push(took / (batches * batch))
  }
  return perOperation
}

/**
 * Heap bytes an operation: the least growth of several runs, less that of an empty one. A run is short enough for the young
 * generation, so that no collection hides what was allocated.
 */
function allocated (operation: Operation, collect: () => void): number {
  const growth = (loop: (count: number) => number): number => {
    let least = Infinity
    for (let i = 0; i < 7; i++) {
      operation.before?.(batch)
      collect()
      const before = process.memoryUsage().heapUsed
      sink = (sink + loop(batch)) % 1e9
      least = Math.min(least, process.memoryUsage().heapUsed - before)
    }
    return least
  }
  const idle = growth(() => 0)
  return Math.max(0, growth(operation.loop) - idle) / batch
}

/** @throws when Node runs without --expose-gc: bytes could not be told. */
export function time (operation: Operation, effort: Effort): Timing {
  const collect = globalThis.gc
  if (collect === undefined) throw new Error('run with --expose-gc')
  const perOperation = sample(operation, effort)
  return { name: operation.name, best: Math.min(...perOperation), median: median(perOperation), bytes: allocated(operation, () => { void collect() }) }
}
