import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { test, type TestContext } from 'node:test'
import { selfSigned } from '../../config/certificate.ts'
import { askUnacknowledged } from '../../../plugins/forwarder/unacknowledged.ts'
import { Uptake } from '../../../plugins/forwarder/uptake.ts'
import { until } from '../../support/wait.ts'

/** Two ends of a connection; the far one does not read. */
async function pair (t: TestContext, host: string): Promise<{ near: Socket, far: Socket }> {
  const server = createServer()
  t.after(() => server.close())
  server.listen(0, host)
  await once(server, 'listening')
  const accepted = once(server, 'connection') as Promise<[Socket]>
  const far = connect({ host, port: (server.address() as AddressInfo).port })
  const [near] = await accepted
  for (const socket of [near, far]) {
    socket.on('error', () => {})
    t.after(() => { socket.destroy() })
  }
  far.pause()
  return { near, far }
}

const asked = (socket: Socket): Promise<number> => new Promise((resolve) => { askUnacknowledged(socket, resolve) })
/** Where the system tells: on Linux, by the addresses that this machine has. */
const linux = process.platform === 'linux'
const loopback = Object.values(networkInterfaces()).flatMap((each) => each ?? []).filter(({ internal }) => internal).map(({ address }) => address)
const hosts = ['127.0.0.1', '::1'].filter((host) => linux && loopback.includes(host))

for (const host of hosts) {
  test(`the system tells how much of what was sent has not been taken (${host})`, async (t) => {
    const { near, far } = await pair(t, host)
    assert.equal(await asked(near), 0)
    near.write(Buffer.alloc(20_000_000))
    // -1 where this machine has more connections than are worth reading through.
    await until(async () => await asked(near) !== 0)
    far.resume()
    await until(async () => near.writableLength === 0 && await asked(near) <= 0, { what: 'all taken' })
  })
}

test('a connection that is gone, or has no ends, is not told of', async (t) => {
  const { near } = await pair(t, '127.0.0.1')
  near.destroy()
  await once(near, 'close')
  assert.equal(await asked(near), -1)
})

test('a limit that is due, or so nearly that a timer would take it for that, is looked at before anybody is judged', async (t) => {
  const { near } = await pair(t, '127.0.0.1')
  for (const now of [400, 399.75]) assert.equal(new Uptake().left(near, 400, 0, now), 100)
})

if (linux) test('behind TLS it is told likewise', behindTls)

async function behindTls (t: TestContext): Promise<void> {
  const server = createTlsServer(selfSigned('localhost'))
  t.after(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, 'secureConnection') as Promise<[Socket]>
  const far = connectTls({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, rejectUnauthorized: false })
  const [near] = await accepted
  for (const socket of [near, far]) {
    socket.on('error', () => {})
    t.after(() => { socket.destroy() })
  }
  far.pause()
  await slowAndIdle(near, far)
}

for (const host of hosts) {
  test(`an end that takes nothing is due at its limit, one that takes a little is not (${host})`, async (t) => {
    const { near, far } = await pair(t, host)
    await slowAndIdle(near, far)
  })
}

async function slowAndIdle (near: Socket, far: Socket): Promise<void> {
  const piece = Buffer.alloc(1_000_000)
  const fill = (): void => { while (near.write(piece)); }
  near.on('drain', fill)
  fill()
  let before = -1
  await until(() => {
    const still = near.bytesWritten === before
    before = near.bytesWritten
    return still
  }, { intervalMs: 200, timeoutMs: 20_000 })

  const limitMs = 400
  const idle = new Uptake()
  const began = performance.now()
  await until(() => idle.left(near, limitMs, began, performance.now()) <= 0, { intervalMs: 20, timeoutMs: 20_000 })

  const slow = new Uptake()
  far.on('data', () => { far.pause() })
  await until(() => {
    far.resume()
    slow.left(near, limitMs, performance.now(), performance.now())
    return slow.at > 0
  }, { intervalMs: 5, timeoutMs: 20_000 })
  assert.ok(slow.left(near, limitMs, began, slow.at) > 0)
}

test('without a connection that could be looked at the limit holds as it is', () => {
  assert.equal(new Uptake().left(null, 1000, 500, 700), 800)
})
