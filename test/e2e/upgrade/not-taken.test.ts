import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rawRequest } from '../../support/raw-client.ts'
import { head, startBoth } from '../edge/support.ts'

const last = head('GET /last HTTP/1.1', 'Host: shop', 'Connection: close')
const asking = {
  'h2c': head('GET /a HTTP/1.1', 'Host: shop', 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'),
  'h2c, with a body': head('POST /a HTTP/1.1', 'Host: shop', 'Connection: Upgrade', 'Upgrade: h2c', 'Content-Length: 5') + 'hello',
  'a WebSocket with a body': head('GET /a HTTP/1.1', 'Host: shop', 'Connection: Upgrade', 'Upgrade: websocket', 'Content-Length: 5') + 'hello'
}

for (const [name, bytes] of Object.entries(asking)) {
  test(`an upgrade that is not taken leaves nobody waiting who sent more behind it: ${name}`, async (t) => {
    const gateway = await startBoth(t)
    // Node's parser drops what it has in hand behind such a request, so the answer says that it is the last.
    const response = await rawRequest(gateway.port, bytes + last, { until: 'close' })
    assert.deepEqual([response.status, response.header('connection'), response.ended, response.responses.length], [200, 'close', 'fin', 1])
    await gateway.left({ counted: 'success', status: 200 })
  })
}

test('an upgrade that is not taken keeps its connection, where nothing came with it', async (t) => {
  const gateway = await startBoth(t)
  const response = await rawRequest(gateway.port, [asking['h2c'], 20, last], { methods: ['GET', 'GET'] })
  assert.deepEqual(response.responses.map(({ status, headers }) => [status, headers.find(([field]) => field === 'Connection')?.[1]]), [[200, 'keep-alive'], [200, 'close']])
})

for (const more of [[], ['Connection: keep-alive']]) {
  test(`chunks in HTTP/1.0 are faulty framing: 400, and the connection closes${more.length === 0 ? '' : ', asked to be kept or not'}`, async (t) => {
    const gateway = await startBoth(t)
    const response = await rawRequest(gateway.port, head('POST /a HTTP/1.0', 'Host: shop', 'Transfer-Encoding: chunked', ...more) + '0\r\n\r\n' + last, { until: 'close' })
    assert.deepEqual([response.status, response.ended, response.raw.toString('latin1').split('HTTP/1.1 ').length], [400, 'fin', 2])
    assert.equal(gateway.behind.requests.length, 0)
    await gateway.left({ counted: 'neutral', status: 400, reason: 'bad_request', upstream: null })
  })
}
