import { deepEqual, equal, rejects } from 'node:assert/strict'
import { getEventListeners, once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { request } from '../../bin/admin-client.ts'
import { boundedSignal } from '../../bin/bounded.ts'
import { followEvents } from '../../bin/cli/event-source.ts'

/** What hangs on a signal: its listeners, and the signals that were made of it. */
function hangingOn (signal: AbortSignal): number {
  const symbol = Object.getOwnPropertySymbols(signal).find(({ description }) => description === 'kDependantSignals')
  const made = symbol === undefined ? undefined : (signal as unknown as Record<symbol, Set<unknown> | undefined>)[symbol]
  return getEventListeners(signal, 'abort').length + (made?.size ?? 0)
}

async function listening (t: TestContext, handler: Parameters<typeof createServer>[1]): Promise<{ base: string, token: string }> {
  const server = createServer(handler).listen(0, '127.0.0.1')
  t.after(() => { server.close().closeAllConnections() })
  await once(server, 'listening')
  return { base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: '' }
}

test('one look after another leaves nothing behind at what stands for Ctrl-C', async (t) => {
  const admin = await listening(t, (_request, response) => { response.end('{}') })
  const { signal } = new AbortController()
  for (let look = 0; look < 5; look++) equal((await request(admin, 'pools', { signal })).status, 200)
  equal(hangingOn(signal), 0)
})

test('a stream of events that is made again and again leaves nothing behind either', async (t) => {
  let times = 0
  const stop = new AbortController()
  const { signal } = stop
  const seen: number[] = []
  const admin = await listening(t, (_request, response) => {
    times++
    seen.push(hangingOn(signal))
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(':hello\n')
    if (times === 3) stop.abort()
  })
  await followEvents(admin, { since: 0, stopped: signal, onEvent: () => {}, onTrouble: () => {} })
  deepEqual(seen, [1, 1, 1])
  equal(hangingOn(signal), 0)
})

test('an answer that does not come ends with its time, and a stopped signal before it', async (t) => {
  const admin = await listening(t, () => {})
  await rejects(request(admin, 'pools', { waitMs: 50 }), { name: 'TimeoutError' })
  await rejects(request(admin, 'pools', { signal: AbortSignal.abort(new Error('stopped')) }), /stopped/)
  const { signal, end } = boundedSignal(1000, AbortSignal.abort(new Error('before')))
  equal(signal.aborted, true)
  end()
})
