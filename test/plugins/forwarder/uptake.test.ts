import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { test, type TestContext } from 'node:test'
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
    await until(async () => await asked(near) > 0)
    far.resume()
    await until(async () => near.writableLength === 0 && await asked(near) === 0, { what: 'all taken' })
  })
}

test('a connection that is gone, or has no ends, is not told of', async (t) => {
  const { near } = await pair(t, '127.0.0.1')
  near.destroy()
  await once(near, 'close')
  assert.equal(await asked(near), -1)
})

for (const host of hosts) {
  test(`an end that takes nothing is due at its limit; one that takes a little, without a buffer's having room, is not (${host})`, (t) => slowAndIdle(t, host))
}

async function slowAndIdle (t: TestContext, host: string): Promise<void> {
  const { near, far } = await pair(t, host)
  near.write(Buffer.alloc(50_000_000))
  let before = -1
  await until(async () => {
    const waiting = await asked(near)
    const still = waiting > 0 && waiting === before
    before = waiting
    return still
  }, { intervalMs: 100 })

  const uptake = new Uptake()
  const limitMs = 400
  const began = performance.now()
  await until(() => uptake.left(near, limitMs, began, performance.now()) <= 0, { intervalMs: 20 })
  assert.equal(uptake.at, 0)

  const { writableLength } = near
  far.on('data', () => { far.pause() })
  await until(() => {
    far.resume()
    uptake.left(near, limitMs, began, performance.now())
    return uptake.at > 0
  }, { intervalMs: 50 })
  assert.equal(near.writableLength, writableLength, 'no buffer of ours has told')
  assert.ok(uptake.left(near, limitMs, began, uptake.at) > 0)
}

test('without a connection that could be looked at the limit holds as it is', () => {
  assert.equal(new Uptake().left(null, 1000, 500, 700), 800)
})
