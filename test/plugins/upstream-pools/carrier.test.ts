import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Dispatcher } from 'undici'
import { Carrier, type Carried } from '../../../plugins/upstream-pools/carrier.ts'
import { exactConnector } from '../../../plugins/upstream-pools/connector.ts'
import { answering, rawUpstream } from '../../support/faulty-upstream.ts'
import { until } from '../../support/wait.ts'

/** Sends one request and resolves when it has been answered whole; nothing of it is kept here. */
function ask (carrier: Carrier): Promise<WeakRef<object>> {
  return new Promise((resolve, reject) => {
    const handler = {
      carrier: null,
      abandoned: false,
      onConnect () {},
      onHeaders: () => true,
      onData: () => true,
      onComplete () {
        carrier.end(performance.now())
        resolve(new WeakRef(handler))
      },
      onError: reject
    } satisfies Carried & Dispatcher.DispatchHandler
    carrier.dispatch({ method: 'GET', path: '/' }, handler)
  })
}

test('an idle connection holds nothing of the request that it has carried', async t => {
  const upstream = await rawUpstream(answering({ body: 'ok' }))
  t.after(() => upstream.close())
  const carrier = new Carrier(upstream.url, {}, exactConnector({}, 1000, () => {}).connect)
  t.after(() => carrier.destroy())
  const request = await ask(carrier)
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  await until(() => {
    collect()
    return request.deref() === undefined
  }, { what: 'the request to be collected' })
  assert.equal(upstream.open.size, 1)
})
