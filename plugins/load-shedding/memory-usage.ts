/**
 * `process.memoryUsage()` opens a file and throws when descriptors have run out. under-pressure calls it from a timer, where a
 * throw ends the process in just the hour in which it is needed. While this guard is in place the last good reading stands in.
 * Returns a function that takes the guard away.
 */
export function guardMemoryUsage (): () => void {
  const original = process.memoryUsage
  let last = original()
  const guarded = Object.assign((): NodeJS.MemoryUsage => {
    try {
      last = original()
    } catch {
      // The reading is a second old at the next try; a number that is a little old beats a dead proxy.
    }
    return last
  }, { rss: () => original.rss() })
  process.memoryUsage = guarded
  return () => {
    if (process.memoryUsage === guarded) process.memoryUsage = original
  }
}
