import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { basename, join } from 'node:path'
import { root } from '../../docs/pages.ts'
import { startGateway } from '../../support/gateway.ts'
import { run } from '../tools/program.ts'
import type { Suite } from '../suite.ts'

const folder = join(root, 'test/conformance/varnishtest')

/** The upstream listens where it is told to, and each scenario starts its own. */
async function freePort (): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

export const varnishtest: Suite = {
  name: 'varnishtest',
  about: 'scenarios in the language of varnishtest, which plays the client and the upstream',
  needs: ['varnishtest'],
  quick: false,
  async run (report) {
    for (const file of readdirSync(folder).filter((name) => name.endsWith('.vtc')).toSorted()) {
      const up = await freePort()
      const gateway = await startGateway(report, { upstreams: [`http://127.0.0.1:${up}`] })
      await report.check(basename(file, '.vtc'), async () => {
        const { code, output } = await run('varnishtest', ['-q', '-D', `up=${up}`, '-D', `gw=${gateway.port}`, join(folder, file)])
        assert.equal(code, 0, output.slice(-2500))
        await gateway.idle()
      })
    }
  }
}
