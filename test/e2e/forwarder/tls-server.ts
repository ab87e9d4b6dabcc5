import type { AddressInfo, Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { createServer } from 'node:tls'
import { answer } from '../../support/faulty-upstream.ts'

/** An upstream that speaks TLS and answers `secret` to whatever comes; its port. */
export async function tlsServer (t: Pick<TestContext, 'after'>, certificate: { cert: string, key: string }): Promise<number> {
  const open = new Set<Socket>()
  const server = createServer(certificate, (socket) => {
    open.add(socket)
    socket.on('error', () => {})
    socket.on('data', () => { socket.write(answer({ body: 'secret' })) })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}
