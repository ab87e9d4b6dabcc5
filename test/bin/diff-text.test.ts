import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { diffLines } from '../../bin/diff-text.ts'
import { diffConfig } from '../../config/diff.ts'
import { parseConfig } from '../../config/parse.ts'
import { redactConfig } from '../../config/redact.ts'

const parse = (input: unknown) => parseConfig(input, 'test')
const pool = { upstreams: [{ url: 'http://10.0.0.1' }, { url: 'http://10.0.0.2' }] }

const before = parse({
  server: { maxHeaderBytes: 65536 },
  admin: { token: 'old-secret' },
  pools: { shop: pool, 'a.b': pool, old: pool },
  routes: [{ path: '/*', pool: 'shop' }, { path: '/old/*', pool: 'old', host: 'shop.example', methods: ['GET'] }, { path: '/x', pool: 'a.b' }]
})
const after = parse({
  server: { maxHeaderBytes: 4096, maxBodyBytes: 5 },
  admin: { token: 'new-secret' },
  reload: { watch: true },
  shedding: { maxInFlight: 64 },
  pools: {
    shop: { balancer: 'weighted', upstreams: [{ url: 'http://10.0.0.2/v2', weight: 5 }, { url: 'http://10.0.0.3' }], timeouts: { headersMs: 3000, connectMs: 1 }, deadlineHeader: 'x-deadline', retry: { statuses: [500, 501, 502, 503, 504, 505, 506, 507, 508, 509, 510, 511, 520, 521, 522] } },
    'a.b': { ...pool, sticky: { secret: 'abcdefghijklmnop' } },
    new: pool
  },
  routes: [{ path: '/x', pool: 'a.b', requestHeaders: { set: { authorization: 'new-secret' } } }, { path: '/*', pool: 'new', timeouts: { totalMs: 0 } }]
})

test('a difference is told line by line, with values and without secrets', () => {
  const lines = diffLines(diffConfig(before, after), redactConfig(before), redactConfig(after), [
    { pool: 'shop', upstream: '10.0.0.1:80', inFlight: 3 }, { pool: 'shop', upstream: '10.0.0.2:80', inFlight: 1 }, { pool: 'old', upstream: '10.0.0.1:80', inFlight: 0 }
  ])
  deepEqual(lines, [
    '+ pool new',
    '- pool old',
    '+ upstream 10.0.0.3:80 in pool shop',
    '+ upstream 10.0.0.1:80 in pool new',
    '+ upstream 10.0.0.2:80 in pool new',
    '- upstream 10.0.0.1:80 in pool old',
    '- upstream 10.0.0.2:80 in pool old',
    '- upstream 10.0.0.1:80 in pool shop (3 exchanges in flight)',
    '~ upstream 10.0.0.2:80 in pool shop (1 exchange in flight): url "http://10.0.0.2" -> "http://10.0.0.2/v2", weight 1 -> 5, new connections',
    '~ pools.shop.balancer "round-robin" -> "weighted"',
    '~ pools.shop.deadlineHeader not set -> "x-deadline"',
    '~ pools.shop.retry.statuses [502,503,504] -> [500,501,502,503,504,505,506,507,508,509,510,511,520,521,522...',
    '~ pools.shop.timeouts.connectMs 2000 -> 1',
    '~ pools.shop.timeouts.headersMs 5000 -> 3000',
    '~ pools["a.b"].sticky not set -> {"secret":"[redacted]","cookie":"breakwater","maxAgeSeconds"...',
    '- route GET shop.example/old/*',
    '~ route /*: pool "shop" -> "new", timeouts not set -> {"totalMs":0}',
    '~ route /x: requestHeaders not set -> {"set":{"authorization":"[redacted]"},"remove":[]}',
    '~ routes come in another order',
    '~ shedding.maxInFlight 256 -> 64',
    '~ server.maxBodyBytes 0 -> 5',
    '~ reload.watch false -> true',
    '! server.maxHeaderBytes needs a restart (65536 -> 4096)',
    '! admin.token needs a restart'
  ])
})

test('without the values of one side, the places are told', () => {
  deepEqual(diffLines(diffConfig(before, parse({ ...before, shedding: { maxInFlight: 64 }, server: { maxHeaderBytes: 4096 } })), null, redactConfig(after)), [
    '~ shedding.maxInFlight changes',
    '! server.maxHeaderBytes needs a restart'
  ])
})

test('no difference is a line, too', () => {
  deepEqual(diffLines(diffConfig(before, before), redactConfig(before), redactConfig(before)), ['nothing would change'])
})
