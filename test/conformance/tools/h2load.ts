import assert from 'node:assert/strict'
import { Folder } from '../../e2e/listener/support.ts'
import { startGateway } from '../../support/gateway.ts'
import { recorder } from '../../support/recorder.ts'
import type { Suite } from '../suite.ts'
import { run } from './program.ts'

/** Ten connections of fifty streams each are all that is asked for at once; a busy machine is no reason to give one up. */
const pool = { connections: { max: 500 }, timeouts: { connectMs: 60_000, headersMs: 60_000, bodyIdleMs: 60_000, totalMs: 0 } }

export const h2load: Suite = {
  name: 'h2load',
  about: 'nghttp2\'s own client: ten thousand requests over ten connections of fifty streams, without TLS and with it',
  needs: ['h2load'],
  quick: false,
  async run (report) {
    const upstream = await recorder(report)
    const tls = { certificates: [new Folder(report).issue('localhost')] }
    for (const [scheme, server] of [['http', { http2: { cleartext: true } }], ['https', { tls }]] as const) {
      const gateway = await startGateway(report, { upstreams: [upstream.url], server, pool, shedding: { maxInFlight: 1000 } })
      upstream.clear()
      const { output } = await run('h2load', ['-n', '10000', '-c', '10', '-m', '50', `${scheme}://127.0.0.1:${gateway.port}/a`], { timeoutMs: 240_000 })
      await report.check(`${scheme}: all are answered with 2xx`, () => { assert.match(output, /10000 succeeded, 0 failed[^]*status codes: 10000 2xx/, output.slice(-1500)) })
      await report.check(`${scheme}: each arrived once, and has its line`, () => {
        assert.deepEqual([upstream.requests.length, upstream.problems], [10_000, []])
        assert.equal(gateway.lines.all('access').filter(({ status }) => status === 200).length, 10_000)
      })
      await report.check(`${scheme}: every place is given back`, () => gateway.idle())
      await gateway.close()
    }
  }
}
