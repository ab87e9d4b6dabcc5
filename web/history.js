/** The figures of the last 15 minutes, put together from answers. */

const steps = 180

/** What is known with what came after it; a gap or another run begins anew. */
export function mergeHistory (known, next) {
  const { run, stepMs, first, last, endedAt, gate, all, pools } = next
  if (known === null || known.run !== run || first > known.last + 1 || first <= known.first) return next
  const count = Math.max(0, last - first + 1)
  const had = known.last - known.first + 1
  const kept = Math.min(steps, had + count)
  const merge = (before, after) => {
    const both = {}
    for (const [key, value] of Object.entries(after)) {
      both[key] = Array.isArray(value) ? [...before?.[key] ?? new Array(had).fill(0), ...value].slice(-kept) : merge(before?.[key], value)
    }
    // A reason that did not occur lately; upstreams that are gone are no lists.
    for (const [key, value] of Object.entries(before ?? {})) {
      if (Array.isArray(value) && !(key in after)) both[key] = [...value, ...new Array(count).fill(0)].slice(-kept)
    }
    return both
  }
  return { run, stepMs, first: last - kept + 1, last, endedAt, gate: merge(known.gate, gate), all: merge(known.all, all), pools: merge(known.pools, pools) }
}

/** The figures of a scope: `''` for all, a pool, or a pool and an upstream. */
export function figuresOf (history, { pool = '', upstream = '' } = {}) {
  if (history === null) return null
  if (pool === '') return history.all
  const figures = history.pools[pool] ?? null
  return upstream === '' ? figures : figures?.upstreams[upstream] ?? null
}

/** The newest step: rates by the second, ratio and times. null: there is none yet. */
export function latest (history, scope) {
  const figures = figuresOf(history, scope)
  if (figures === null || figures.requests.length === 0) return null
  const requests = figures.requests.at(-1)
  return {
    rate: requests / (history.stepMs / 1000),
    errors: requests === 0 ? 0 : figures.failure.at(-1) / requests,
    requests,
    p50: figures.p50.at(-1),
    p95: figures.p95.at(-1),
    p99: figures.p99.at(-1)
  }
}

export const sum = (figures) => figures.reduce((total, each) => total + each, 0)
