import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { spawnNode } from '../../support/process.ts'
import { until } from '../../support/wait.ts'

/** A loopback port where connections are neither made nor refused: a listener that accepts nobody, and whose queue we fill. */
export async function deafPort (t: TestContext): Promise<number> {
  const script = `
    const server = require('node:net').createServer().listen(0, '127.0.0.1', 1, () => {
      process.stdout.write(JSON.stringify({ msg: 'port', port: server.address().port }) + '\\n', () => {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
      })
    })`
  const child = spawnNode(t, ['-e', script])
  const port = (await child.waitForLine('port'))['port'] as number
  const held: Socket[] = []
  t.after(() => { for (const socket of held) socket.destroy() })
  // Far more than it has room for: what is not connected then keeps knocking, so that no room comes free.
  for (let i = 0; i < 16; i++) held.push(connect({ port, host: '127.0.0.1' }).on('error', () => {}))
  await until(() => held.some(({ connecting }) => !connecting))
  await delay(200)
  assert.ok(held.filter(({ connecting }) => connecting).length >= 8, 'the queue of the listener has no end')
  return port
}
