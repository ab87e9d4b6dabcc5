import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import upstreamPools, { type UpstreamPoolsOptions } from '../../plugins/upstream-pools.ts'

const build = async (pools: unknown) => {
  const app = Fastify()
  await app.register(upstreamPools, { pools } as UpstreamPoolsOptions)
  return app
}

test('the plugin alone takes bare URLs and completes the rest', async () => {
  const app = await build({ shop: { upstreams: ['http://127.0.0.1:9001', { url: 'unix:/run/a.sock' }], connections: { max: 3 } } })
  const [pool] = app.pools.list()
  assert.deepEqual([pool?.name, pool?.upstreams.map(({ id }) => id), pool?.options.connections], ['shop', ['127.0.0.1:9001', '/run/a.sock'], { max: 3, keepAliveMs: 4000, learnKeepAlive: true, maxStreams: 100 }])
  assert.ok(Object.isFrozen(pool) && Object.isFrozen(pool?.options.health))
  await app.close()
})

test('the plugin alone refuses what a configuration refuses, with the paths of all that is wrong', async () => {
  const pools = { 'a b': { upstreams: ['http://127.0.0.1:1'] }, shop: { upstreams: ['http://127.0.0.1:1', 'ftp://x'], health: { statuses: [299, 200] }, breaker: { openMs: 2, maxOpenMs: 1 } } }
  await assert.rejects(build(pools), (error: Error) => {
    assert.ok(error instanceof TypeError)
    for (const path of ['pools["a b"]', 'pools.shop.upstreams[1].url', 'pools.shop.health.statuses', 'pools.shop.breaker.maxOpenMs']) assert.ok(error.message.includes(`\n  - ${path}: `), `${path} in ${error.message}`)
    return true
  })
  await assert.rejects(build({ shop: { upstreams: 'http://127.0.0.1:1' } }), /pools\.shop\.upstreams: must be a list/)
})
