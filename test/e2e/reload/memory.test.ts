import { ok } from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { startGateway } from '../../support/gateway.ts'
import { until } from '../../support/wait.ts'
import { client, named } from './kit.ts'

test('a route that nobody asks for any more does not hold a pool as it was when it was asked', async (t) => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const upstream = await named(t, 'a')
  const port = upstream.id.split(':')[1] as string
  const routes = Array.from({ length: 20 }, (_, index) => ({ path: `/r${index}/*`, pool: 'shop' }))
  const gateway = await startGateway(t, { pools: { shop: { health: { enabled: false }, discovery: { source: 'x' } } }, routes })
  const get = client(t, gateway.port)
  const lanes: Array<WeakRef<object>> = []
  for (const [index, { path }] of routes.entries()) {
    // One server with another weight each time: each is a change of the pool.
    gateway.app.pools.setMembers('shop', [{ url: `http://name-${index}.internal:${port}`, address: '127.0.0.1', weight: index + 1 }])
    await get(path.replace('*', 'x'))
    lanes.push(new WeakRef(gateway.app.pools.lane('shop') as object))
  }
  await gateway.idle()
  await until(() => {
    collect()
    return lanes.filter((lane) => lane.deref() !== undefined).length <= 2
  }, { what: 'old lanes let go' })
  ok(gateway.app.pools.lane('shop'))
})
