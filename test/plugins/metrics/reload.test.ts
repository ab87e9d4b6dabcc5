import assert from 'node:assert/strict'
import { test } from 'node:test'
import { request } from '../../e2e/forwarder/support.ts'
import { answer, answering, rawUpstream, send } from '../../support/faulty-upstream.ts'
import { startGateway, type Gateway } from '../../support/gateway.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { counted, scrape } from './support.ts'

const base = { admin: { enabled: false }, shedding: { pressure: { maxEventLoopDelayMs: 0, maxEventLoopUtilization: 0 } } }

async function applied ({ app }: Gateway, config: Record<string, unknown>, valid = true): Promise<void> {
  const verdict = await app.configuration.apply({ ...base, ...config })
  assert.equal(verdict.valid, valid, JSON.stringify(verdict))
}

const asked = (gateway: Gateway, path: string): Promise<{ status: number }> => rawRequest(gateway.port, request('GET', path))

/** Every label of this name that is exposed. */
async function labelled (gateway: Gateway, name: string): Promise<string[]> {
  const families = await scrape(gateway)
  return [...new Set(Array.from(families.values(), ({ samples }) => samples.flatMap(({ labels }) => labels[name] ?? [])).flat())].toSorted()
}

test('series of a removed upstream, pool and route end with the reload, and begin at 0 where they come back', async (t) => {
  const [one, two] = [await rawUpstream(answering({ status: 502 })), await rawUpstream(answering())]
  t.after(() => Promise.all([one.close(), two.close()]))
  const pool = (...upstreams: Array<{ url: string }>) => ({ health: { enabled: false }, breaker: { consecutiveFailures: 1 }, upstreams: upstreams.map(({ url }) => ({ url })) })
  const all = { pools: { shop: pool(one, two), users: pool(two) }, routes: [{ path: '/users/*', pool: 'users' }, { path: '/*', pool: 'shop' }] }
  const fewer = { pools: { shop: pool(two) }, routes: [{ path: '/*', pool: 'shop' }] }
  const gateway = await startGateway(t, all)
  for (const path of ['/users/1', '/a', '/b', '/c']) await asked(gateway, path)
  await gateway.idle()
  const [first, second] = [gateway.upstream(0).id, gateway.upstream(1).id]
  assert.deepEqual(await labelled(gateway, 'upstream'), [first, second].toSorted())
  assert.deepEqual(await labelled(gateway, 'pool'), ['shop', 'users'])
  assert.deepEqual(await labelled(gateway, 'route'), ['/*', '/users/*', 'none'])
  assert.equal((await counted(gateway, 'edge_breaker_transitions_total'))[`pool=shop,upstream=${first},from=closed,to=open`], 1)

  await applied(gateway, fewer)
  assert.deepEqual(await labelled(gateway, 'upstream'), [second])
  assert.deepEqual(await labelled(gateway, 'pool'), ['shop'])
  assert.deepEqual(await labelled(gateway, 'route'), ['/*', 'none'])
  assert.deepEqual(await counted(gateway, 'edge_upstream_requests_total'), { [`pool=shop,upstream=${second},outcome=success`]: 2 }, 'who stays goes on')
  assert.equal((await counted(gateway, 'edge_requests_total'))['route=/*,method=GET,code=200'], 2)

  await applied(gateway, all)
  assert.deepEqual(await labelled(gateway, 'pool'), ['shop', 'users'])
  assert.deepEqual(await counted(gateway, 'edge_upstream_requests_total'), { [`pool=shop,upstream=${second},outcome=success`]: 2 })
  assert.deepEqual(await counted(gateway, 'edge_upstream_duration_seconds_count'), { [`pool=shop,upstream=${second}`]: 2 })
  assert.deepEqual(await counted(gateway, 'edge_breaker_transitions_total'), {})
  await asked(gateway, '/users/1')
  assert.equal((await counted(gateway, 'edge_requests_total'))['route=/users/*,method=GET,code=200'], 1)
})

test('an exchange that ends after its route and its upstream have gone brings neither back', async (t) => {
  const [one, two] = [await rawUpstream(answering()), await rawUpstream(answering())]
  t.after(() => Promise.all([one.close(), two.close()]))
  const pool = (url: string) => ({ health: { enabled: false }, upstreams: [{ url }] })
  let end = (): void => {}
  one.handle(async (socket) => {
    await new Promise<void>((resolve) => { end = resolve })
    await send(socket, answer({ body: 'late' }))
  })
  const gateway = await startGateway(t, { pools: { old: pool(one.url) }, routes: [{ path: '/old/*', pool: 'old' }] })
  const client = await rawConnect(gateway.port)
  t.after(() => client.destroy())
  await client.write(request('GET', '/old/1'))
  await until(() => one.requests.length === 1)
  await applied(gateway, { pools: { new: pool(two.url) }, routes: [{ path: '/new/*', pool: 'new' }] })
  end()
  assert.equal((await client.readResponse()).status, 200)
  await gateway.idle()
  assert.deepEqual(await labelled(gateway, 'pool'), ['new'])
  assert.deepEqual(await counted(gateway, 'edge_requests_total'), { 'route=other,method=GET,code=200': 1 })
  assert.deepEqual(await counted(gateway, 'edge_upstream_requests_total'), {})
})

test('members that discovery takes away and brings back begin at 0, too', async (t) => {
  const [one, two] = [await rawUpstream(answering()), await rawUpstream(answering())]
  t.after(() => Promise.all([one.close(), two.close()]))
  const gateway = await startGateway(t, {
    pools: { shop: { health: { enabled: false }, discovery: { source: 'mine' } } },
    extend: (app) => { app.discovery.provide('mine', { start: (report) => { report([one, two].map(({ url }) => ({ url }))) }, stop: () => {} }) }
  })
  await until(() => gateway.app.pools.get('shop')?.upstreams.length === 2)
  for (let i = 0; i < 4; i++) await asked(gateway, '/')
  await gateway.idle()
  assert.equal(Object.keys(await counted(gateway, 'edge_upstream_requests_total')).length, 2)
  assert.deepEqual(await counted(gateway, 'edge_discovery_members'), { 'pool=shop': 2 })
  const gone = `127.0.0.1:${one.port}`
  gateway.app.pools.setMembers('shop', [{ url: two.url }])
  assert.equal((await labelled(gateway, 'upstream')).includes(gone), false)
  gateway.app.pools.setMembers('shop', [{ url: one.url }, { url: two.url }])
  assert.deepEqual(Object.values(await counted(gateway, 'edge_upstream_requests_total')), [2])
})

test('reloads are counted by their result, and what is in force is told', async (t) => {
  const one = await rawUpstream(answering())
  t.after(() => one.close())
  const config = { pools: { shop: { health: { enabled: false }, upstreams: [{ url: one.url }] } } }
  const gateway = await startGateway(t, config)
  await applied(gateway, config)
  assert.deepEqual([await counted(gateway, 'edge_config_reloads_total'), await counted(gateway, 'edge_config_version'), await counted(gateway, 'edge_config_last_reload_successful')], [{ 'result=ok': 1 }, { '': 2 }, { '': 1 }])
  await applied(gateway, { ...config, metrics: { exemplars: false } }, false)
  assert.deepEqual([await counted(gateway, 'edge_config_reloads_total'), await counted(gateway, 'edge_config_version'), await counted(gateway, 'edge_config_last_reload_successful')], [{ 'result=ok': 1, 'result=rejected': 1 }, { '': 2 }, {}])
  const at = (await counted(gateway, 'edge_config_last_reload_timestamp_seconds'))['']
  assert.equal(at, Date.parse(gateway.app.configuration.view().loadedAt) / 1000)
})
