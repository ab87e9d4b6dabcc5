import { deepEqual, equal, ok } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parse } from 'yaml'
import { parseText } from '../../config/file.ts'
import { loadConfig } from '../../config/load.ts'
import { parseConfig } from '../../config/parse.ts'
import { optionSections } from '../../docs/options-table.ts'
import { shipped } from './support.ts'

const sample = (name: string) => shipped(`config/${name}`)

/** The values at an option's path, like `pools.<name>.upstreams[].url`. */
const valuesAt = (value: unknown, path: string): unknown[] => {
  let values: unknown[] = [value]
  for (const part of path.split('.')) {
    const key = part.replace('[]', '')
    const objects = values.filter(each => typeof each === 'object' && each !== null) as Record<string, unknown>[]
    values = objects.flatMap(each => key === '<name>' ? Object.values(each) : Object.hasOwn(each, key) ? [each[key]] : [])
    if (part.endsWith('[]')) values = values.flat()
  }
  return values
}

test('the small sample loads', () => {
  const { config } = loadConfig({ BREAKWATER_CONFIG: sample('breakwater.yaml') })
  deepEqual(config.pools['shop']?.upstreams.map(({ url }) => url), ['http://127.0.0.1:9001', 'http://127.0.0.1:9002'])
  equal(config.admin.token, '')
})

/** Lines of options that are commented out begin with "#" in the place of a space. */
const uncommented = (text: string): unknown => parse(text.replaceAll(/^#(?= {3}| - | [a-z]\w*:)/gm, ' '))

test('the full sample holds every option, with its default', () => {
  const { config } = loadConfig({ BREAKWATER_CONFIG: sample('full.yaml') })
  const text = readFileSync(sample('full.yaml'), 'utf8')
  const all = uncommented(text)
  for (const row of optionSections().flatMap(section => section.rows)) {
    ok(valuesAt(all, row.path).length > 0, `${row.path} is not in full.yaml`)
    if (row.default === null || row.path === 'routes' || row.path.endsWith('.upstreams')) continue
    for (const value of valuesAt(all, row.path)) {
      if (row.path !== 'admin.token') equal(JSON.stringify(value), row.default, row.path)
    }
    for (const value of valuesAt(config, row.path)) equal(JSON.stringify(value), row.default, row.path)
  }
  deepEqual(['tls', 'sticky', 'discovery'].flatMap(key => valuesAt(parse(text), `pools.<name>.${key}`)), [])
})

/** The sample of the design that the first version was built by: what it has must go on being accepted. */
const design = `
server: { headersTimeoutMs: 5000, requestTimeoutMs: 30000, keepAliveTimeoutMs: 60000, maxHeaderBytes: 65536, maxBodyBytes: 0, trustedProxies: [], requestIdHeader: x-request-id, stripRequestHeaders: [], probes: true, shutdown: { delayMs: 0, graceMs: 10000 } }
admin: { enabled: true, host: 127.0.0.1, port: 9090, token: "\${BREAKWATER_ADMIN_TOKEN:-}" }
shedding:
  maxInFlight: 256
  retryAfterSeconds: 1
  pressure: { maxEventLoopDelayMs: 1000, maxEventLoopUtilization: 0.98, maxHeapUsedBytes: 0, maxRssBytes: 0 }
pools:
  shop:
    balancer: round-robin
    upstreams:
      - { url: "http://127.0.0.1:9001", weight: 1 }
      - { url: "http://127.0.0.1:9002" }
    health: { enabled: true, path: /healthz, intervalMs: 5000, timeoutMs: 1000, statuses: [200, 299], rise: 1, fall: 1, jitter: 0.1, initial: unhealthy }
    breaker:
      mode: enforce
      consecutiveFailures: 5
      window: { seconds: 60, minimumRequests: 10, minimumShare: 0.1, failureRatio: 0.5 }
      stall: { outstanding: 8, factor: 8, minMs: 500 }
      openMs: 15000
      maxOpenMs: 120000
      jitter: 0.1
      halfOpen: { probes: auto, probeTimeoutMs: 10000 }
    timeouts: { connectMs: 2000, headersMs: 5000, bodyIdleMs: 30000, totalMs: 30000 }
    retry: { retries: 0, statuses: [502, 503, 504], maxBufferedBodyBytes: 65536, budget: { ratio: 0.2, minPerSecond: 1 } }
    hostHeader: upstream
    connections: { max: 128, keepAliveMs: 4000 }
    maxInFlightPerUpstream: 0
routes:
  - { path: "/*", pool: shop }
`

test('the design\'s sample is all defaults', () => {
  const config = parseConfig(parseText(design, 'design'), 'design', { env: {} })
  const short = parseConfig({ pools: { shop: { upstreams: [{ url: 'http://127.0.0.1:9001' }, { url: 'http://127.0.0.1:9002' }] } } }, 'short')
  deepEqual(config, short)
})
