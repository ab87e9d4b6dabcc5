import { setTimeout as delay } from 'node:timers/promises'

export interface UntilOptions {
  /** 5000 */
  timeoutMs?: number
  /** 5 */
  intervalMs?: number
  /** What is awaited, for the message when it does not come. */
  what?: string
}

/**
 * Polls until the condition gives something truthy, and returns that.
 * @throws after `timeoutMs`, naming `what` and the last value; what the condition itself throws is not caught
 */
export async function until<T> (condition: () => T | Promise<T>, options: UntilOptions = {}): Promise<NonNullable<T>> {
  const { timeoutMs = 5000, intervalMs = 5, what = String(condition) } = options
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const value = await condition()
    if (value) return value
    if (performance.now() >= deadline) throw new Error(`not within ${timeoutMs} ms: ${what} (last: ${String(value)})`)
    await delay(intervalMs)
  }
}

/** The promise's value. @throws after `timeoutMs`, naming `what` */
export async function within<T> (promise: Promise<T>, { timeoutMs = 5000, what = 'the promise' }: Omit<UntilOptions, 'intervalMs'> = {}): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${timeoutMs} ms: ${what}`)), timeoutMs)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
