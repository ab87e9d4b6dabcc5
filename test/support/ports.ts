import { connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import type { TestContext } from 'node:test'

/**
 * A loopback port that refuses every connection until the test ends: it is the near end of a connection that we hold, so
 * nobody listens there and the system gives it to nobody else.
 */
export async function closedPort (t: Pick<TestContext, 'after'>): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const holder = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', localAddress: '127.0.0.1' })
  const [[far]] = await Promise.all([once(server, 'connection'), once(holder, 'connect')])
  t.after(async () => {
    holder.destroy()
    far.destroy()
    server.close()
    await once(server, 'close')
  })
  return holder.localPort as number
}
