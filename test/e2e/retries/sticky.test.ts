import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { answer, rawUpstream, send } from '../../support/faulty-upstream.ts'
import type { RawHandler } from '../../support/faulty-upstream.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Gateway, GatewayOptions } from '../../support/gateway.ts'
import { rawRequest } from '../../support/raw-client.ts'
import type { RawResult } from '../../support/raw-client.ts'
import { request } from '../forwarder/support.ts'
import { named } from './support.ts'

const secret = 'a secret that nobody knows'

/** Three upstreams of one tier. */
async function three (t: TestContext, pool: Record<string, unknown>, handlers: RawHandler[] = [named('a'), named('b'), named('c')], options: GatewayOptions = {}): Promise<Gateway> {
  const upstreams = await Promise.all(handlers.map((handler) => rawUpstream(handler)))
  t.after(() => Promise.all(upstreams.map((upstream) => upstream.close())))
  const shop = { health: { enabled: false }, ...pool, upstreams: upstreams.map(({ url }) => ({ url })) }
  return startGateway(t, { ...options, pools: { shop } })
}

const ask = (gateway: Gateway, headers: Record<string, string> = {}, path = '/'): Promise<RawResult> => rawRequest(gateway.port, request('GET', path, headers))
const cookieOf = ({ headers }: RawResult): string | undefined => headers.find(([name, value]) => name.toLowerCase() === 'set-cookie' && value.startsWith('breakwater='))?.[1]

test('a client stays at its upstream by a cookie that tells nobody where that is', async (t) => {
  const gateway = await three(t, { sticky: { secret } })
  const first = await ask(gateway)
  const cookie = cookieOf(first)
  assert.match(cookie ?? '', /^breakwater=[A-Za-z0-9_-]{24}; Path=\/; HttpOnly; SameSite=Lax$/)
  const pair = (cookie ?? '').split(';', 1)[0] as string
  for (let i = 0; i < 6; i++) {
    const again = await ask(gateway, { Cookie: `x=y; ${pair}` })
    assert.deepEqual([again.header('x-upstream'), cookieOf(again)], [first.header('x-upstream'), undefined])
  }
  const others = await Promise.all(Array.from({ length: 6 }, () => ask(gateway)))
  assert.equal(new Set(others.map((got) => got.header('x-upstream'))).size, 3, 'those without a cookie are spread')
})

test('a cookie that somebody made up is as good as none, and is replaced', async (t) => {
  const gateway = await three(t, { sticky: { secret } })
  for (const value of ['', 'breakwater=', 'breakwater=127.0.0.1', `breakwater=${'A'.repeat(24)}`, 'breakwater=__proto__']) {
    const got = await ask(gateway, { Cookie: value })
    assert.equal(got.status, 200)
    assert.notEqual(cookieOf(got), undefined)
  }
})

test('where its upstream takes nothing any more, a client goes to another one and stays there', async (t) => {
  const gateway = await three(t, { sticky: { secret } })
  const first = await ask(gateway)
  const pair = (cookieOf(first) ?? '').split(';', 1)[0] as string
  const upstreams = gateway.app.pools.get('shop')?.upstreams ?? []
  const lines = gateway.lines.all('access')
  gateway.app.pools.setDraining('shop', lines[0]?.['upstream'] as string, true)
  const second = await ask(gateway, { Cookie: pair })
  assert.notEqual(second.header('x-upstream'), first.header('x-upstream'))
  const next = (cookieOf(second) ?? '').split(';', 1)[0] as string
  for (let i = 0; i < 4; i++) assert.equal((await ask(gateway, { Cookie: next })).header('x-upstream'), second.header('x-upstream'))
  assert.equal(upstreams.length, 3)
})

test('the cookie stands beside the upstream\'s own, and names the upstream that answered, not the one that failed', async (t) => {
  const bad: RawHandler = (socket) => send(socket, answer({ status: 503, headers: [['Set-Cookie', 'bad=1']] }))
  const good: RawHandler = (socket) => send(socket, answer({ headers: [['Set-Cookie', 'a=1'], ['Set-Cookie', 'b=2']], body: 'good' }))
  const gateway = await three(t, { sticky: { secret }, retry: { retries: 1, backoff: { baseMs: 1, maxMs: 1 } }, breaker: { consecutiveFailures: 0, window: { failureRatio: 0 } } }, [good, bad])
  for (let i = 0; i < 4; i++) {
    const got = await ask(gateway)
    assert.equal(got.text(), 'good')
    const cookies = got.headers.filter(([name]) => name.toLowerCase() === 'set-cookie').map(([, value]) => value)
    assert.deepEqual([cookies.length, cookies.slice(0, 2)], [3, ['a=1', 'b=2']])
    const pair = (cookieOf(got) ?? '').split(';', 1)[0] as string
    const again = await ask(gateway, { Cookie: pair })
    assert.deepEqual([again.text(), cookieOf(again)], ['good', undefined])
    assert.equal(gateway.lines.all('access').at(-1)?.['attempts'], 1)
  }
})

test('nobody is kept at an upstream for the sake of a failure, and no 1xx carries the cookie', async (t) => {
  const failing = await three(t, { sticky: { secret } }, [named('bad', 500)])
  assert.equal(cookieOf(await ask(failing)), undefined)
  const hints: RawHandler = (socket) => send(socket, 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n', answer({ body: 'x' }))
  const got = await ask(await three(t, { sticky: { secret } }, [hints]))
  assert.deepEqual(got.interim.map(({ headers }) => headers.map(([name]) => name.toLowerCase())), [['link']])
  assert.notEqual(cookieOf(got), undefined)
})

test('the cookie does not stay behind in an answer of the app\'s own', async (t) => {
  const gateway = await three(t, { sticky: { secret } }, [named('a')], {
    before: (app) => { app.addHook('onSend', async (_request, reply) => { if (reply.getHeader('x-upstream') !== undefined) throw new Error('not this one') }) }
  })
  const got = await ask(gateway)
  assert.deepEqual([got.status, got.header('set-cookie'), got.header('x-upstream')], [500, undefined, undefined])
})

const by: Array<[string, Record<string, unknown>, (key: string) => [Record<string, string>, string]]> = [
  ['a header', { by: 'header', name: 'X-User' }, (key) => [{ 'x-user': key }, '/']],
  ['a cookie', { by: 'cookie', name: 'user' }, (key) => [{ Cookie: `other=1; user=${key}` }, '/']],
  ['the path', { by: 'path' }, (key) => [{}, `/${key}?${Math.random()}`]]
]

for (const [what, hash, keyed] of by) {
  test(`a key that is taken from ${what} always goes to the same upstream, and different ones are spread`, async (t) => {
    const gateway = await three(t, { balancer: 'hash', hash })
    const seen = new Map<string, string | undefined>()
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 20; i++) {
        const key = `user-${i}`
        const upstream = (await ask(gateway, ...keyed(key))).header('x-upstream')
        assert.equal(seen.get(key) ?? upstream, upstream)
        seen.set(key, upstream)
      }
    }
    assert.equal(new Set(seen.values()).size, 3)
  })
}

test('one address goes to one upstream', async (t) => {
  const gateway = await three(t, { balancer: 'hash', hash: { by: 'client-address' } })
  const names = await Promise.all(Array.from({ length: 9 }, () => ask(gateway)))
  assert.equal(new Set(names.map((got) => got.header('x-upstream'))).size, 1)
})

test('requests without the key are spread', async (t) => {
  const gateway = await three(t, { balancer: 'hash', hash: { by: 'header', name: 'X-User' } })
  const names: Array<string | undefined> = []
  for (let i = 0; i < 60; i++) names.push((await ask(gateway)).header('x-upstream'))
  assert.equal(new Set(names).size, 3)
})
