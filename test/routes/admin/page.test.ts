/** The page's files; what it does in a browser is told in test/web. */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { test } from 'node:test'
import { shipped } from '../../config/support.ts'
import { withAdmin } from './fixtures.ts'

const web = dirname(shipped('web/index.html'))

test('the page and all its files are served below the prefix, without a token, for this machine alone', async (t) => {
  const app = await withAdmin(t, { token: 'secret' })
  const index = await app.inject('/admin/')
  assert.deepEqual([index.statusCode, index.headers['content-type']], [200, 'text/html; charset=utf-8'])
  const named = [...index.body.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, name]) => name as string)
  assert.ok(named.length > 3)
  for (const name of [...named, ...readdirSync(web).filter((each) => each !== 'index.html').map((each) => `page/${each}`)]) {
    assert.ok(!name.startsWith('/') && !name.includes(':'), `${name} is relative`)
    const file = await app.inject(`/admin/${name}`)
    assert.equal(file.statusCode, 200, name)
    assert.match(String(file.headers['content-type']), /^(?:text\/(?:javascript|css)|image\/svg\+xml); charset=utf-8$/, name)
    assert.ok(file.rawPayload.length > 0, name)
  }
  assert.equal((await app.inject({ url: '/admin/', headers: { host: 'evil.example' } })).statusCode, 421)
  assert.equal((await app.inject({ url: '/admin/', remoteAddress: '10.1.2.3' })).statusCode, 403)
  assert.equal((await app.inject({ url: '/admin/', headers: { origin: 'http://evil.example', host: 'localhost' } })).statusCode, 403)
})

test('without its slash the page is somewhere else, because its links are relative', async (t) => {
  const app = await withAdmin(t)
  for (const [path, location] of [['/admin', './admin/'], ['/admin?x=//evil.example', './admin/']] as const) {
    const moved = await app.inject(path)
    assert.deepEqual([moved.statusCode, moved.headers['location']], [308, location])
  }
})

test('a browser takes nothing but these files, and asks for them again each time', async (t) => {
  const app = await withAdmin(t)
  for (const path of ['/admin/', '/admin/page/main.js', '/admin/page/style.css', '/admin/page/uPlot.iife.min.js']) {
    const { headers } = await app.inject(path)
    const policy = String(headers['content-security-policy'])
    assert.match(policy, /default-src 'none'/, path)
    assert.doesNotMatch(policy, /unsafe|\*|https?:|data:/, path)
    assert.deepEqual([headers['x-content-type-options'], headers['cache-control'], headers['referrer-policy']], ['nosniff', 'no-cache', 'no-referrer'], path)
    const etag = String(headers['etag'])
    const ask = async (known: string) => app.inject({ url: path, headers: { 'if-none-match': known } })
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const same = await ask(known)
      assert.deepEqual([same.statusCode, same.body, same.headers['etag']], [304, '', etag], known)
    }
    assert.equal((await ask('"other"')).statusCode, 200)
  }
})

test('nothing else is a file, and the files take GET and HEAD alone', async (t) => {
  const app = await withAdmin(t)
  for (const path of ['/admin/page/', '/admin/page/index.ts', '/admin/page/../package.json', '/admin/page/%2e%2e%2fpackage.json', '/admin/web/main.js']) {
    assert.equal((await app.inject(path)).statusCode, 404, path)
  }
  for (const path of ['/admin/', '/admin/page/main.js']) {
    const refused = await app.inject({ method: 'POST', url: path, headers: { 'content-type': 'application/json' }, payload: '{}' })
    assert.deepEqual([refused.statusCode, refused.headers['allow']], [405, 'GET, HEAD'], path)
    assert.equal((await app.inject({ method: 'HEAD', url: path })).statusCode, 200, path)
  }
})
