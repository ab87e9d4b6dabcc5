import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HealthOptions, UpstreamOptions } from '../../../config/schema.ts'
import { checkOptions } from '../../../lib/health/options.ts'

const pool: HealthOptions = {
  enabled: true, type: 'http', path: '/healthz', intervalMs: 5000, timeoutMs: 1000, statuses: [200, 299], rise: 2, fall: 3, jitter: 0.1, initial: 'unhealthy',
  removal: { share: 0.5, seconds: 10 }
}

const table: Array<[name: string, own: UpstreamOptions['health'], differs: object]> = [
  ['none: all is the pool\'s', undefined, {}],
  ['an empty section: all is the pool\'s', {}, {}],
  ['its path', { path: '/up' }, { path: '/up' }],
  ['its port', { port: 8081 }, { port: 8081 }],
  ['its interval and time limit', { intervalMs: 10, timeoutMs: 5 }, { intervalMs: 10, timeoutMs: 5 }],
  ['its rise and fall', { rise: 1, fall: 9 }, { rise: 1, fall: 9 }],
  ['all of it', { path: '/a', port: 1, intervalMs: 20, timeoutMs: 30, rise: 4, fall: 5 }, { path: '/a', port: 1, intervalMs: 20, timeoutMs: 30, rise: 4, fall: 5 }]
]

for (const [name, own, differs] of table) {
  test(`overrides of an upstream: ${name}`, () => {
    const given = Object.freeze({ ...pool })
    assert.deepEqual(checkOptions(given, own), { ...pool, port: null, ...differs })
  })
}
