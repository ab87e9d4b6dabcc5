import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rawUpstream, send } from '../../support/faulty-upstream.ts'
import { startGateway } from '../../support/gateway.ts'
import { rawRequest } from '../../support/raw-client.ts'

for (const type of ['text/html; charset=utf-8', 'html; charset=utf-8', 'a b c', '', 'application/json']) {
  for (const late of [false, true]) {
    test(`the Content-Type "${type}" arrives as it came, with a body that comes ${late ? 'after' : 'with'} the head`, async (t) => {
      const upstream = await rawUpstream(async (socket) => {
        const head = `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nContent-Length: 2\r\n\r\n`
        if (!late) return send(socket, `${head}ok`)
        await send(socket, head)
        setTimeout(() => { socket.write('ok') }, 30)
        return undefined
      })
      t.after(() => upstream.close())
      const { port } = await startGateway(t, { upstreams: [upstream.url] })
      const answer = await rawRequest(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n')
      assert.equal(answer.header('content-type'), type)
      assert.equal(answer.text(), 'ok')
    })
  }
}
