/** docs/http.md: its table of refusals is the one that the tests know, and is true. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { accessLines, startBoth } from '../e2e/edge/support.ts'
import { rawRequest } from '../support/raw-client.ts'
import { refusedBodies, refusedHeads } from '../support/refused.ts'
import { pageOf } from './pages.ts'

const rows = [...pageOf('docs/http.md').text.matchAll(/^\| (.+) \| (\d{3}) \| `(\w+)` \|$/gm)].map(([, what, status, reason]) => [what, Number(status), reason])
const known = { ...refusedHeads, ...refusedBodies }

test('docs/http.md has every row of the tests\' table of refusals, and no other', () => {
  assert.deepEqual(rows, Object.entries(known).map(([what, { status, reason }]) => [what, status, reason]))
})

for (const [what, status, reason] of rows) {
  const row = known[what as string]
  test(`docs/http.md: ${what}`, async (t) => {
    assert.ok(row !== undefined)
    const gateway = await startBoth(t, { ...row.server !== undefined && { server: row.server } }, async (_socket, request) => { await request.body() })
    const [first] = Object.values(row.cases)
    assert.ok(first !== undefined)
    const response = await rawRequest(gateway.port, first.parts, { until: 'close', end: first.end === true, allowHalfOpen: true })
    assert.deepEqual([response.status, response.header('connection'), response.ended], [status, 'close', 'fin'])
    assert.deepEqual((await accessLines(gateway, 1)).map((line) => [line['status'], line['reason']]), [[status, reason]])
    for (const request of gateway.behind.requests) assert.equal(row.inBody === true && !(await request.body()).complete, true)
  })
}
