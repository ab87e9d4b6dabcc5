import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, send } from '../../support/faulty-upstream.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { accessLines, head, startBoth } from './support.ts'

const get = head('GET /a HTTP/1.1', 'Host: shop')

const manyFields = (count: number): string[] => Array.from({ length: count }, (_, i) => `a${i}: 1`)

test('2000 fields are passed on, all of them', async (t) => {
  const gateway = await startBoth(t)
  assert.equal((await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop', ...manyFields(1999)))).status, 200)
  assert.equal(gateway.behind.requests[0]?.headers.filter(([name]) => /^a\d+$/.test(name)).length, 1999)
})

test('the limit of the head is the configured one', async (t) => {
  const gateway = await startBoth(t, { server: { maxHeaderBytes: 1024 } })
  const withField = (size: number): string => head('GET /a HTTP/1.1', 'Host: shop', `X-A: ${'x'.repeat(size)}`)
  assert.equal((await rawRequest(gateway.port, withField(800))).status, 200)
  assert.equal((await rawRequest(gateway.port, withField(1100))).status, 431)
})

const badBodies: Record<string, string> = {
  'a size of letters': 'zz\r\nhi\r\n0\r\n\r\n',
  'a negative size': '-2\r\nhi\r\n0\r\n\r\n',
  'a size that is too small': '1\r\nhello\r\n0\r\n\r\n',
  'a size beyond all numbers': 'fffffffffffffffff\r\nhi\r\n0\r\n\r\n',
  'a bare LF behind the size': '2\nhi\r\n0\r\n\r\n',
  'no line end behind the data': '2\r\nhi0\r\n\r\n',
  'a size with a space': '2 \r\nhi\r\n0\r\n\r\n'
}
for (const [name, bytes] of Object.entries(badBodies)) {
  test(`a malformed chunk ends its request with 400 and nobody blames the upstream: ${name}`, async (t) => {
    const gateway = await startBoth(t, {}, async (socket, request) => {
      if ((await request.body()).complete) await send(socket, answer({ body: 'whole' }))
    })
    // Whether the first chunk has been forwarded already or not.
    for (const pause of [0, 1]) {
      const first = head('POST /a HTTP/1.1', 'Host: shop', 'Transfer-Encoding: chunked')
      const response = await rawRequest(gateway.port, pause === 0 ? first + bytes
        : [`${first}5\r\nhello\r\n`, () => until(() => gateway.behind.requests.length > 0), bytes], { until: 'close' })
      assert.deepEqual([response.status, (response.json() as { reason: string }).reason, response.ended, response.responses.length], [400, 'bad_request', 'fin', 1], response.raw.toString('latin1'))
      assert.equal(response.raw.toString('latin1').split('HTTP/1.1 ').length, 2, 'one answer')
      await gateway.left({ counted: 'neutral', status: 400, reason: 'bad_request', bytes: response.body.length })
    }
    for (const request of gateway.behind.requests) assert.equal((await request.body()).complete, false)
  })
}

test('chunk extensions without end are refused as too large', async (t) => {
  const gateway = await startBoth(t)
  const response = await rawRequest(gateway.port, head('POST /a HTTP/1.1', 'Host: shop', 'Transfer-Encoding: chunked') + `2;${'x'.repeat(20000)}\r\nhi\r\n0\r\n\r\n`, { until: 'close' })
  assert.deepEqual([response.status, response.ended], [413, 'fin'])
  await accessLines(gateway, 1)
})

test('what follows on a refused connection is nobody\'s request, however it is split', async (t) => {
  const gateway = await startBoth(t)
  const response = await rawRequest(gateway.port, ['GARBAGE\r\n\r\n', 20, 'more of it', 20, get, 20, get], { until: 'close' })
  assert.deepEqual([response.status, response.raw.toString('latin1').split('HTTP/1.1 ').length, response.ended], [400, 2, 'fin'])
  assert.equal((await accessLines(gateway, 1)).length, 1)
  assert.equal(gateway.behind.requests.length, 0)
})

test('a client that goes on sending gets to read its answer nevertheless', async (t) => {
  const gateway = await startBoth(t)
  const response = await rawRequest(gateway.port, [`GARBAGE ${'x'.repeat(200000)}`, 'y'.repeat(200000)], { until: 'close' })
  assert.deepEqual([response.status, response.complete], [400, true])
})

test('a client that breaks off in the middle of a head harms nobody, and its address is still known', async (t) => {
  const gateway = await startBoth(t)
  for (let turn = 0; turn < 5; turn++) {
    const client = await rawConnect(gateway.port)
    await client.write('GET /a HTTP/1.1\r\nHo')
    client.reset()
  }
  assert.equal((await rawRequest(gateway.port, get)).status, 200)
  const lines = await accessLines(gateway, 1)
  // The system tells of a reset as a reset, or as an end behind what was sent.
  assert.ok(lines.length <= 6)
  for (const line of lines.filter(({ method }) => method === null)) assert.deepEqual([line['client_ip'], line['reason']], ['127.0.0.1', 'bad_request'])
})
