import { test } from 'node:test'
import assert from 'node:assert/strict'
import { largeConfig } from '../../bench/peers/large-config.ts'
import { scenarios } from '../../bench/scenarios.ts'
import { parseConfig } from '../../config/parse.ts'
import { RouteTable } from '../../lib/route/table.ts'

const ports = Array.from({ length: 100 }, (_, i) => 20_000 + i)

test('the large configuration is valid, with a thousand routes and a hundred upstreams', () => {
  const config = parseConfig(largeConfig(ports), 'the benchmark')
  assert.equal(config.routes.length, 1000)
  assert.equal(config.pools['shop']?.upstreams.length, 100)
})

test('the scenario of many routes is taken by one of them, the others by the last one', () => {
  const table = new RouteTable(parseConfig(largeConfig(ports), 'the benchmark').routes)
  const routeOf = (path: string): string | undefined => table.match('GET', '127.0.0.1', path, '', {})?.route.options.path
  assert.equal(routeOf(scenarios.deep.path), '/service-617/orders/:id')
  for (const name of ['get', 'large'] as const) assert.equal(routeOf(scenarios[name].path), '/*')
})
