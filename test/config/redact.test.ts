import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { parseConfig } from '../../config/parse.ts'
import { redactConfig } from '../../config/redact.ts'
import { isSecret, isSecretName } from '../../config/secrets.ts'
import { given } from '../../config/values.ts'
import { linesOf, withShop } from './support.ts'

const secret = 's3cret-and-long-enough'
const upstreams = [{ url: 'http://127.0.0.1:9001' }]

test('redactConfig hides the token, and only when there is one', () => {
  const config = parseConfig(withShop({}, { admin: { token: 'secret' } }), 'test')
  const shown = redactConfig(config)
  equal(shown.admin.token, '[redacted]')
  equal(config.admin.token, 'secret')
  ok(Object.isFrozen(shown.admin))
  deepEqual(shown.pools, config.pools)
  equal(redactConfig(parseConfig(withShop(), 'test')).admin.token, '')
})

test('every secret is hidden, and nothing else', () => {
  const input = {
    admin: { token: secret },
    pools: { 'a.b': { upstreams, sticky: { secret, cookie: 'place' } }, shop: { upstreams } },
    routes: [{
      path: '/*',
      pool: 'shop',
      headers: { 'X-Api-Key': secret, 'x-token': '*', 'x-version': '2' },
      query: { access_token: secret, page: '1' },
      requestHeaders: { set: { Authorization: secret, 'X-Auth': secret, 'x.client-secret': secret, 'x-kept': 'kept' }, remove: ['cookie'] },
      responseHeaders: { set: { 'set-cookie': secret, server: 'shop' } }
    }]
  }
  const config = parseConfig(input, 'test')
  const shown = redactConfig(config)
  ok(!JSON.stringify(shown).includes(secret))
  equal(JSON.stringify(shown).split('[redacted]').length - 1, 8)
  deepEqual(shown.routes[0]?.headers, { 'X-Api-Key': '[redacted]', 'x-token': '*', 'x-version': '2' })
  deepEqual(shown.routes[0]?.query, { access_token: '[redacted]', page: '1' })
  equal(shown.routes[0]?.requestHeaders?.set['x-kept'], 'kept')
  deepEqual(shown.routes[0]?.requestHeaders?.remove, ['cookie'])
  equal(shown.routes[0]?.responseHeaders?.set['server'], 'shop')
  equal(shown.pools['a.b']?.sticky?.cookie, 'place')
  equal(JSON.stringify(config).split(secret).length - 1, 8, 'the configuration itself is left alone')
  // What is shown has the shape of a configuration.
  deepEqual(Object.keys(shown), Object.keys(config))
})

test('what no shown configuration has, no error shows either', () => {
  for (const path of ['admin.token', 'pools.shop.sticky.secret', 'pools["a.b"].sticky.secret', 'routes[7].requestHeaders.set.Authorization', 'routes[0].query["a.token"]', 'routes[0].headers.x-api-key']) {
    ok(isSecret(path), path)
    equal(given(secret, path), 'a string (not shown)')
  }
  for (const path of ['', 'admin.host', 'pools.shop.sticky', 'pools.shop.sticky.cookie', 'routes[0].headers', 'routes[0].path', 'routes[0].requestHeaders.remove[0]']) ok(!isSecret(path), path)
  const long = `${secret}${'\n'}`
  const lines = linesOf(() => parseConfig(withShop({ sticky: { secret: 's3cret' } }, { admin: { token: `${secret} x` }, routes: [{ path: '/*', pool: 'shop', requestHeaders: { set: { 'x-token': long } } }] }), 'test'))
  equal(lines.length, 3)
  for (const line of lines) ok(!line.includes('s3cret') && line.includes('not shown'), line)
})

test('names of fields that carry secrets', () => {
  for (const name of ['authorization', 'Cookie', 'Set-Cookie', 'proxy-authorization', 'x-api-key', 'apikey', 'x-auth', 'X-CSRF-Token', 'client_secret', 'password', 'session_id']) ok(isSecretName(name), name)
  for (const name of ['x-author', 'x-version', 'accept', 'key', 'server']) ok(!isSecretName(name), name)
})
