import type { SlowStartOptions } from '../../config/schema.ts'

/**
 * The share of its weight, and of its in-flight limit, that an upstream takes so many milliseconds after it came (back):
 * max(minimumShare, (elapsed / ms) ^ (1 / aggression)), and 1 from then on, or where slow start is off. In (0, 1].
 * Source: Envoy's slow start.
 */
export function rampShare (options: SlowStartOptions, elapsedMs: number): number {
  const { ms, minimumShare, aggression } = options
  if (ms === 0 || elapsedMs >= ms) return 1
  return elapsedMs > 0 ? Math.max(minimumShare, (elapsedMs / ms) ** (1 / aggression)) : minimumShare
}
