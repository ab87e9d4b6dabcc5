import assert from 'node:assert/strict'
import { startGateway, type Gateway } from '../../support/gateway.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import type { Suite } from '../suite.ts'
import { run } from './program.ts'
import { shop } from './shop.ts'

const connections = '150'
const common = ['-c', connections, '-r', '150', '-l', '6', '-i', '1', '-p', '3']

/** What each sends, and what it is answered: beside it another client is served all the time. */
const attacks: Record<string, { args: string[], path: string, timeouts?: Record<string, number> }> = {
  'slow heads (Slowloris)': { args: ['-H'], path: '/echo' },
  'slow bodies (R.U.D.Y.)': { args: ['-B', '-s', '8192', '-x', '10'], path: '/echo' },
  'slow bodies where an upload may last': { args: ['-B', '-s', '8192', '-x', '10'], path: '/echo', timeouts: { requestMs: 0, totalMs: 0 } },
  'slow readers': { args: ['-X', '-w', '512', '-y', '1024', '-n', '1', '-z', '32', '-k', '1'], path: '/large' },
  'many ranges': { args: ['-R', '-a', '1', '-b', '2000'], path: '/range' }
}

const connectionsOf = ({ app }: Gateway): Promise<number> => new Promise((resolve, reject) => {
  app.server.getConnections((error, count) => { if (error === null) resolve(count); else reject(error) })
})

export const slow: Suite = {
  name: 'slowhttptest',
  about: 'slow heads, bodies and readers, and many ranges: others are served meanwhile, and the connections are cut in time',
  needs: ['slowhttptest'],
  quick: false,
  async run (report) {
    const upstream = await shop(report)
    const server = { headersTimeoutMs: 1500, requestTimeoutMs: 3000, keepAliveTimeoutMs: 1000 }
    // A reader that takes too little holds its place for as long as a silence may last.
    const limits = { bodyIdleMs: 2000, totalMs: 4000 }
    for (const [name, { args, path, timeouts }] of Object.entries(attacks)) {
      const pool = { timeouts: { ...limits, ...timeouts }, connections: { max: 300 } }
      const gateway = await startGateway(report, { upstreams: [upstream.url], server, pool, shedding: { maxInFlight: 400 } })
      const attack = run('slowhttptest', [...args, ...common, '-u', `http://127.0.0.1:${gateway.port}${path}`])
      let most = 0
      let served = 0
      const others: number[] = []
      for (let over = false; !over;) {
        most = Math.max(most, await connectionsOf(gateway))
        const { status } = await rawRequest(gateway.port, 'GET /echo HTTP/1.1\r\nHost: shop\r\n\r\n', { timeoutMs: 5000 })
        if (status === 200) served++
        else others.push(status)
        over = await Promise.race([attack.then(() => true), new Promise<boolean>((resolve) => { setTimeout(resolve, 50, false) })])
      }
      const { output } = await attack
      await report.check(`${name}: it came to be (${most} connections)`, () => { assert.ok(most > 0, output.slice(-1500)) })
      await report.check(`${name}: another client was served, each time`, () => { assert.deepEqual(others, [], `beside ${served} served`); assert.ok(served > 0) })
      await report.check(`${name}: its connections are gone soon, and every place is given back`, async () => {
        await until(async () => await connectionsOf(gateway) === 0, { timeoutMs: 8000, what: 'no connection' })
        await gateway.idle()
      })
      await gateway.close()
    }
  }
}
