/** Numbers and times for people. */

let skewMs = 0

/** Takes the proxy's clock for ours, where they differ by more than its header is exact. */
export function learnClock (date) {
  const offset = Date.parse(date) + 500 - Date.now()
  if (Number.isFinite(offset)) skewMs = Math.abs(offset) > 1500 ? offset : 0
}

/** The proxy's time, epoch ms. */
export const now = () => Date.now() + skewMs

export const clock = (time) => new Date(time).toLocaleTimeString('en-GB')

/** A length of time: `12 s`, `3 min`, `2.5 h`. */
export function duration (ms) {
  const s = Math.max(0, ms) / 1000
  if (s < 1) return '<1 s'
  if (s < 90) return `${Math.round(s)} s`
  if (s < 5400) return `${Math.round(s / 60)} min`
  return s < 172800 ? `${Math.round(s / 360) / 10} h` : `${Math.round(s / 86400)} days`
}

export const ago = (time) => `${duration(now() - Date.parse(time))} ago`
export const until = (time) => duration(Date.parse(time) - now())
/** `in 12 s, at 12:03:04` */
export const at = (time) => `in ${until(time)}, at ${clock(time)}`

export function millis (ms) {
  if (ms === null || ms === undefined) return '–'
  if (ms < 10) return ms.toFixed(1)
  return ms < 10000 ? String(Math.round(ms)) : `${(ms / 1000).toFixed(ms < 100000 ? 1 : 0)}k`
}

export const rate = (perSecond) => perSecond === 0 ? '0' : perSecond < 10 ? perSecond.toFixed(1) : String(Math.round(perSecond))
export const percent = (ratio) => ratio === 0 ? '0 %' : ratio < 0.1 ? `${(100 * ratio).toFixed(1)} %` : `${Math.round(100 * ratio)} %`
export const bytes = (count) => count < 1e9 ? `${Math.round(count / 1048576)} MiB` : `${(count / 1073741824).toFixed(1)} GiB`
export const plural = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`
/** A code as words: `probes_failed` -> `probes failed`. */
export const words = (code) => String(code).replaceAll('_', ' ')
