import { test } from 'node:test'
import { answering, rawUpstream } from '../../support/faulty-upstream.ts'
import { rawConnect } from '../../support/raw-client.ts'
import { head } from '../edge/support.ts'
import { portOf, spawnApp } from '../lifecycle/support.ts'
test('x', async (t) => {
  const behind = await rawUpstream(answering({ body: 'hello' }))
  t.after(() => behind.close())
  const child = spawnApp(t, [behind.url], { args: ['-g', '3000'] })
  const port = await portOf(child)
  const stdout = child.child.stdout
  stdout?.unpipe(child.output)
  stdout?.pause()
  const c = await rawConnect(port)
  for (let i = 0; i < 4000; i++) { await c.write(head('GET / HTTP/1.1', 'Host: a')); await c.readResponse() }
  child.kill()
  const exited = await Promise.race([new Promise((r) => child.child.on('exit', (code, s) => { r([code, s]) })), new Promise((r) => { setTimeout(r, 8000, 'hangs') })])
  console.log(exited)
  child.kill()
  const exited2 = await Promise.race([new Promise((r) => child.child.on('exit', (code, s) => { r([code, s]) })), new Promise((r) => { setTimeout(r, 3000, 'hangs') })])
  console.log(exited2)
})
