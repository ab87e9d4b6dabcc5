import { test } from 'node:test'
import Fastify from 'fastify'
import upstreamPools from '../../../plugins/upstream-pools.ts'
import { answering, rawUpstream, stall, type RawHandler } from '../../support/faulty-upstream.ts'
import { until } from '../../support/wait.ts'

for (const [what, handler, ending] of [['is answered', answering({ body: 'hello' }), 'complete'], ['waits when the app closes', stall, 'error']] as Array<[string, RawHandler, string]>) {
  test(`the connection of a request that has one of its own ends when that ${what}`, async (t) => {
    const upstream = await rawUpstream(handler)
    t.after(() => upstream.close())
    const app = Fastify()
    t.after(() => app.close())
    await app.register(upstreamPools, { pools: { shop: { upstreams: [upstream.url] } } })
    await app.ready()
    let ended = ''
    app.pools.get('shop')?.upstreams[0]?.dispatchFresh(false, (client) => client.dispatch({ method: 'GET', path: '/' }, {
      onConnect () {},
      onHeaders: () => true,
      onData: () => true,
      onComplete () { ended = 'complete' },
      onError () { ended = 'error' }
    }))
    await until(() => upstream.requests.length === 1)
    if (ending === 'error') await app.close()
    await until(() => ended === ending && upstream.open.size === 0, { what: 'the end of the connection' })
  })
}
