/** Upstreams' bytes: answers, whole and broken, and what comes behind them. */
import { createServer, type AddressInfo, type Socket } from 'node:net'
import type { Random } from '../../lib/random.ts'
import type { Report } from '../conformance/suite.ts'
import { startGateway } from '../support/gateway.ts'
import { strictAnswers } from '../support/strict-answers.ts'
import { hurried, hurriedPool, linesOf, type Campaign } from './campaign.ts'
import { converse } from './client.ts'
import { below, mutate, oneOf, pieces } from './mutate.ts'

/** The answer that no client may ever get: nobody asked for it. */
const stray = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray'

const bodies = [
  (text: string) => `Content-Length: ${text.length}\r\n\r\n${text}`,
  (text: string) => `Transfer-Encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`,
  (text: string) => `Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n1;a=b\r\n${text[0] ?? ''}\r\n${(text.length - 1).toString(16)}\r\n${text.slice(1)}\r\n0\r\nX-T: 1\r\n\r\n`,
  (text: string) => `Connection: close\r\n\r\n${text}`,
  (text: string) => `Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n`
]
const heads = ['HTTP/1.1 200 OK', 'HTTP/1.1 404 Not Found', 'HTTP/1.1 500 Oops', 'HTTP/1.1 204 No Content', 'HTTP/1.1 304 Not Modified', 'HTTP/1.0 200 OK', 'HTTP/1.1 206 Partial Content', 'HTTP/1.1 301 Moved', 'HTTP/1.1 200']
const interim = ['', '', '', 'HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n', 'HTTP/1.1 102 Processing\r\n\r\n', 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n']
const fields = ['', '', 'X-A: 1\r\n', 'Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n', 'Connection: X-A\r\nX-A: 1\r\n', 'Content-Encoding: gzip\r\n', 'Keep-Alive: timeout=1\r\n', 'Location: /b\r\n', 'X-Latin: caf\xe9\r\n', `X-Long: ${'x'.repeat(3000)}\r\n`, 'Retry-After: 1\r\n']

function answerBytes (random: Random): Buffer {
  const text = oneOf(random, ['x', 'own answer', 'y'.repeat(5000), stray])
  const whole = oneOf(random, interim) + oneOf(random, heads) + '\r\n' + oneOf(random, fields) + oneOf(random, bodies)(text) + (random() < 0.2 ? stray : '')
  return mutate(Buffer.from(whole, 'latin1'), random, 3)
}

const asked = ['GET', 'GET', 'HEAD', 'POST', 'DELETE']

export const answers: Campaign = {
  name: 'answers',
  about: 'answers of an upstream, mutated, cut, and with bytes behind them: the client gets its own or none',
  async open (report: Report) {
    let parts: Buffer[] = []
    let end: 'keep' | 'fin' | 'reset' = 'keep'
    let served = 0
    const open = new Set<Socket>()
    const server = createServer({ noDelay: true }, (socket) => {
      open.add(socket)
      let head = ''
      socket.on('error', () => {}).on('close', () => { open.delete(socket) })
      socket.on('data', (bytes: Buffer) => {
        head += bytes.toString('latin1')
        // Every request of ours has a body of five bytes or none.
        if (!/\r\n\r\n$|\r\n\r\nhello$/.test(head) || (head.startsWith('POST') && !head.endsWith('hello'))) return
        head = ''
        served++
        void say(socket)
      })
    })
    async function say (socket: Socket): Promise<void> {
      for (const part of parts) {
        if (!socket.writable) return
        await new Promise<void>((resolve) => { socket.write(part, () => { resolve() }) })
        await new Promise((resolve) => { setTimeout(resolve, 1) })
      }
      if (end === 'fin') socket.end()
      else if (end === 'reset' && !socket.destroyed) socket.resetAndDestroy()
    }
    await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
    report.after(() => { server.close(); for (const socket of open) socket.destroy() })
    const gateway = await startGateway(report, { upstreams: [`http://127.0.0.1:${(server.address() as AddressInfo).port}`], server: hurried, pool: { ...hurriedPool, connections: { max: 1, keepAliveMs: 300 } } })
    return {
      gateway,
      async step (random) {
        parts = pieces(answerBytes(random), random)
        end = oneOf(random, ['keep', 'keep', 'fin', 'reset'] as const)
        served = 0
        const method = oneOf(random, asked)
        const request = `${method} /a HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n${method === 'POST' ? 'Content-Length: 5\r\n\r\nhello' : '\r\n'}`
        let got: Buffer = Buffer.alloc(0)
        const lines = await linesOf(gateway, async () => { ({ got } = await converse(gateway.port, [Buffer.from(request)], below(random, 10) === 0 ? 'leave' : 'read')) })
        if (lines.length !== 1) throw new Error(`${lines.length} access lines`)
        // A connection that ended without a byte is tried once more where the method allows it.
        if (served > (method === 'POST' ? 1 : 2)) throw new Error(`the upstream got ${served} requests`)
        const { answers: all } = strictAnswers(got, [method])
        if (all.length > 1) throw new Error(`${all.length} answers: ${JSON.stringify(got.toString('latin1').slice(0, 600))}`)
        // Where the upstream's bytes can be read at all, the first answer is the one that was asked for.
        const [own] = strictAnswers(Buffer.concat(parts), [method]).answers
        if (own !== undefined && own.body.toString('latin1') !== 'stray' && all[0]?.body.toString('latin1') === 'stray') throw new Error('the client got the stray answer')
      }
    }
  }
}
