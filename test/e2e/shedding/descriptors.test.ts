import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { answer, rawUpstream, send } from '../../support/faulty-upstream.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { skipWithout } from '../../support/tools.ts'
import { until } from '../../support/wait.ts'
import { head } from '../edge/support.ts'
import { portOf, spawnApp } from '../lifecycle/support.ts'

const get = head('GET /a HTTP/1.1', 'Host: shop')

test('running out of descriptors does not end the process, and it serves again when there are some', async (t) => {
  if (spawnSync('prlimit', ['--version']).status !== 0) return skipWithout('prlimit', t)
  const behind = await rawUpstream((socket) => send(socket, answer({ body: 'hello' })))
  t.after(() => behind.close())
  const child = spawnApp(t, [behind.url], { pool: { health: { enabled: true, intervalMs: 100 } }, shedding: { maxInFlight: 1000, pressure: { maxHeapUsedBytes: 1e12 } } })
  const port = await portOf(child)
  await until(async () => (await rawRequest(port, get)).status === 200)
  const used = Number(spawnSync('sh', ['-c', `ls /proc/${child.pid}/fd | wc -l`]).stdout.toString())
  assert.equal(spawnSync('prlimit', [`--pid=${child.pid}`, `--nofile=${used + 10}`]).status, 0)
  // They take all descriptors that there are, and then wait to be accepted.
  const clients = await Promise.all(Array.from({ length: 40 }, () => rawConnect(port)))
  for (const client of clients) await client.write(get)
  // Two of the timed readings of memory, and a score of health checks.
  await new Promise((resolve) => { setTimeout(resolve, 2500) })
  assert.equal(child.child.exitCode, null, JSON.stringify({ errors: child.errors.lines, output: child.output.lines.slice(-5) }))
  for (const client of clients) client.destroy()
  await until(async () => (await rawRequest(port, get, { timeoutMs: 1000 }).catch(() => null))?.status === 200, { timeoutMs: 20000, intervalMs: 100, what: 'service' })
  child.kill()
  assert.equal((await child.exit).code, 0)
})
