/** Numbers as people read them. */

/** Below a second in ms, with a digit behind the point where there is not much before it; above it in seconds. */
export function milliseconds (ms: number): string {
  if (Math.abs(ms) >= 999.5) return `${Math.round(ms / 100) / 10} s`
  return `${Math.abs(ms) < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`
}

export const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`

export function bytes (count: number): string {
  return count < 1048576 ? `${count} bytes` : `${Math.round(count / 104857.6) / 10} MiB`
}
