import { UsageError } from './command.ts'

const units: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const maxMs = 2147483647

/** `90s`, `5m`, `1h30m`, `500ms` in ms. @throws UsageError unless it is from 1 ms to 24.8 days */
export function durationOf (text: string, label: string): number {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)]
  const whole = parts.length > 0 && parts.map(([part]) => part).join('') === text
  const ms = Math.round(parts.reduce((sum, [, count, unit]) => sum + Number(count) * (units[unit as string] as number), 0))
  if (!whole || ms < 1 || ms > maxMs) throw new UsageError(`${label} must be a time such as 90s, 5m or 1h30m, up to 24d, not "${text}"`)
  return ms
}

/** As it would be typed, in whole seconds from 10 s on: `450ms`, `2.5s`, `12s`, `4m 10s`, `3h 5m`, `2d 4h`. */
export function durationText (ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`
  if (ms < 10_000) return `${Math.round(ms / 100) / 10}s`
  const seconds = Math.round(ms / 1000)
  const [days, hours, minutes] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60]
  const two = (a: number, unit: string, b: number, smaller: string): string => `${a}${unit}${b === 0 ? '' : ` ${b}${smaller}`}`
  if (days > 0) return two(days, 'd', hours, 'h')
  if (hours > 0) return two(hours, 'h', minutes, 'm')
  return minutes > 0 ? two(minutes, 'm', seconds % 60, 's') : `${seconds}s`
}
