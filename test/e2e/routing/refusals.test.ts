import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { accessLines, head } from '../edge/support.ts'
import { brief, startRouted } from './support.ts'

test('a disabled route answers every request itself, whatever its method and body, and reaches nobody', async (t) => {
  const gateway = await startRouted(t, ['shop'], [
    { path: '/*', pool: 'shop' },
    { path: '/off/*', disabled: {}, pool: 'shop' },
    { path: '/gone', disabled: { status: 410, detail: 'Moved to the archive in March' } },
    { path: '/later', disabled: { retryAfterSeconds: 3600 } }
  ])
  for (const start of ['GET /off', 'POST /off/a', 'DELETE /off/a']) {
    const response = await gateway.ask(start)
    assert.deepEqual([...brief(response), response.header('retry-after'), response.header('connection')], [503, 'route_disabled', undefined, 'keep-alive'], start)
  }
  const gone = await gateway.ask('GET /gone')
  const { status, title, detail, reason } = gone.json() as Record<string, unknown>
  assert.deepEqual([gone.status, status, title, detail, reason], [410, 410, 'This route is switched off', 'Moved to the archive in March', 'route_disabled'])
  assert.equal(gone.header('proxy-status'), 'breakwater; error=http_request_denied; details="route_disabled"')
  assert.equal((await gateway.ask('HEAD /later')).header('retry-after'), '3600')
  const upload = await rawRequest(gateway.port, [head('POST /off HTTP/1.1', 'Host: shop', 'Content-Length: 1000000'), 'x'.repeat(1000000)], { until: 'close' })
  assert.deepEqual([...brief(upload), upload.complete, upload.header('connection')], [503, 'route_disabled', true, 'close'])
  assert.equal((await gateway.ask('GET /on')).status, 200)
  const lines = await accessLines(gateway, 7)
  const off = ['/off/*', null, 0, 'route_disabled', 503]
  assert.deepEqual(lines.map(({ route, pool, attempts, reason: why, status: code }) => [route, pool, attempts, why, code]), [
    off, off, off, ['/gone', null, 0, 'route_disabled', 410], ['/later', null, 0, 'route_disabled', 503], off, ['/*', 'shop', 1, null, 200]
  ])
  assert.equal(gateway.behind['shop']?.requests.length, 1)
})

test('who asks a route too often gets 429 before a body is read; the other routes and clients are served', async (t) => {
  const gateway = await startRouted(t, ['shop'], [
    { path: '/*', pool: 'shop' },
    { path: '/search', pool: 'shop', rateLimit: { max: 2 } },
    { path: '/orders', pool: 'shop', rateLimit: { max: 1, by: 'header', name: 'X-Api-Key', windowMs: 30000 } }
  ], { server: { trustedProxies: ['127.0.0.1'] } })
  const from = (client: string) => `X-Forwarded-For: ${client}`
  assert.deepEqual([brief(await gateway.ask('GET /search', from('10.0.0.1'))), brief(await gateway.ask('POST /search', from('10.0.0.1')))], [[200, 'shop'], [200, 'shop']])
  const refused = await gateway.ask('GET /search', from('10.0.0.1'))
  assert.deepEqual([...brief(refused), refused.header('content-type'), refused.header('connection')], [429, 'rate_limited', 'application/problem+json', 'keep-alive'])
  const seconds = Number(refused.header('retry-after'))
  assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 72, String(seconds))
  assert.deepEqual([(await gateway.ask('GET /search', from('10.0.0.2'))).status, (await gateway.ask('GET /other', from('10.0.0.1'))).status], [200, 200])

  const order = (key: string) => gateway.ask('POST /orders', `X-Api-Key: ${key}`, 'Content-Length: 0')
  assert.deepEqual([(await order('a')).status, (await order('a')).status, (await order('b')).status], [200, 429, 200])
  const upload = await rawRequest(gateway.port, [head('POST /orders HTTP/1.1', 'Host: shop', 'X-Api-Key: a', 'Content-Length: 1000000'), 'x'.repeat(1000000)], { until: 'close' })
  assert.deepEqual([...brief(upload), upload.complete, upload.header('connection')], [429, 'rate_limited', true, 'close'])
  // The client promised a body and never sends it: it is answered all the same.
  const silent = await rawConnect(gateway.port)
  t.after(() => { silent.destroy() })
  await silent.write(head('POST /orders HTTP/1.1', 'Host: shop', 'X-Api-Key: a', 'Content-Length: 10', 'Expect: 100-continue'))
  assert.equal((await silent.readResponse('POST')).status, 429)

  const lines = await accessLines(gateway, 9)
  assert.deepEqual(lines.filter(({ reason }) => reason === 'rate_limited').map(({ route, pool, attempts, status }) => [route, pool, attempts, status]), [
    ['/search', null, 0, 429], ...[1, 2, 3].map(() => ['/orders', null, 0, 429])
  ])
})

test('a body that is served behind a rate limit arrives whole', async (t) => {
  const gateway = await startRouted(t, ['shop'], [{ path: '/*', pool: 'shop', rateLimit: {} }])
  const bodies: string[] = []
  gateway.behind['shop']?.handle(async (socket, request) => {
    const { body } = await request.body()
    bodies.push(body.toString())
    socket.write('HTTP/1.1 204 No Content\r\n\r\n')
  })
  const text = 'x'.repeat(300000)
  const sent = await rawRequest(gateway.port, [head('POST / HTTP/1.1', 'Host: shop', 'Content-Length: 300000'), text.slice(0, 100000), 20, text.slice(100000)])
  assert.equal(sent.status, 204)
  assert.ok(bodies.join() === text)
})

test('a client that leaves while its request is counted costs nothing', async (t) => {
  const gateway = await startRouted(t, ['shop'], [{ path: '/*', pool: 'shop', rateLimit: {} }])
  for (let i = 0; i < 20; i++) {
    const client = await rawConnect(gateway.port)
    await client.write(head('GET / HTTP/1.1', 'Host: shop'))
    client.reset()
  }
  await gateway.idle()
  assert.equal((await gateway.ask('GET /')).status, 200)
  await gateway.idle()
  assert.equal(gateway.lines.find(({ msg }) => msg === 'internal_error'), undefined)
})

test('counts go on over a reload that leaves the limit as it is', async (t) => {
  const limited = { path: '/a', pool: 'shop', rateLimit: { max: 1 } }
  const gateway = await startRouted(t, ['shop'], [limited])
  assert.equal((await gateway.ask('GET /a')).status, 200)
  gateway.app.routeTable.swap([{ path: '/b', pool: 'shop' }, limited])
  assert.deepEqual([(await gateway.ask('GET /a')).status, (await gateway.ask('GET /b')).status], [429, 200])
})

test('a request under way keeps its route while the table is swapped', async (t) => {
  const gateway = await startRouted(t, ['shop'], [{ path: '/*', pool: 'shop', responseHeaders: { set: { 'x-table': 'first' } } }])
  const release: Array<() => void> = []
  gateway.behind['shop']?.handle((socket) => { release.push(() => { socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate') }) })
  const first = gateway.ask('GET /a')
  await until(() => release.length === 1, { what: 'the request at the upstream' })
  gateway.app.routeTable.swap([{ path: '/*', disabled: {} }])
  assert.deepEqual(brief(await gateway.ask('GET /a')), [503, 'route_disabled'])
  release[0]?.()
  const late = await first
  assert.deepEqual([late.status, late.text(), late.header('x-table')], [200, 'late', 'first'])
})
