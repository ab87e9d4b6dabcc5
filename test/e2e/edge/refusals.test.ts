/** The table of docs/http.md on the public listener: one answer, one line, nothing forwarded, and nothing behind it taken for a request. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LogLine } from '../../support/collect.ts'
import { answer, send } from '../../support/faulty-upstream.ts'
import { rawRequest, type Part } from '../../support/raw-client.ts'
import { refusedBodies, refusedHeads, type RefusedCase, type RefusedRow } from '../../support/refused.ts'
import { head, startBoth, type GatewayAndUpstream } from './support.ts'
import { until } from '../../support/wait.ts'

const first = head('GET /first HTTP/1.1', 'Host: shop')
const behind = head('POST /behind HTTP/1.1', 'Host: shop', 'Content-Length: 2') + 'hi'

/** The refused bytes by themselves, and with requests around them. */
const ways: Record<string, { before?: string, after: (parts: Part[]) => Part[] }> = {
  'alone': { after: (parts) => parts },
  'with a request behind it': { after: (parts) => [...parts.slice(0, -1), Buffer.concat([bytesOf(parts.at(-1) as Part), bytesOf(behind)])] },
  'with a request behind it, later': { after: (parts) => [...parts, 10, behind] },
  'behind a request': { before: first, after: (parts) => parts }
}

const bytesOf = (part: Part): Buffer => Buffer.isBuffer(part) ? part : Buffer.from(part as string, 'latin1')

function lineOf ({ method, path, status, reason, bytes, client_ip: client }: LogLine): unknown[] {
  return [method, path, status, reason, bytes, client]
}

async function check (gateway: GatewayAndUpstream, row: RefusedRow, { parts, parsed, either = false, end = false }: RefusedCase, name: string, before = ''): Promise<void> {
  const { lines, behind: upstream } = gateway
  const asked = upstream.requests.length
  const told = lines.all('access').length
  const methods = before === '' ? ['GET', 'GET'] : ['GET', 'GET', 'GET']
  const response = await rawRequest(gateway.port, before === '' ? parts : [before, ...parts], { until: 'close', methods, end, allowHalfOpen: true })
  const seen = `${name}: ${response.raw.toString('latin1').slice(0, 600)}`
  const refusal = response.responses.at(-1)
  assert.ok(refusal !== undefined, seen)
  assert.deepEqual(response.responses.map(({ status }) => status), before === '' ? [row.status] : [200, row.status], seen)
  assert.equal(response.raw.toString('latin1').split('HTTP/1.1 ').length - 1, response.responses.length, seen)
  assert.deepEqual([response.ended, refusal.header('connection'), refusal.header('content-type'), refusal.complete], ['fin', 'close', 'application/problem+json', true], seen)
  assert.equal((refusal.json() as { reason: string }).reason, row.reason, seen)

  await until(() => lines.all('access').length >= told + response.responses.length, { what: `the lines of ${name}` })
  await gateway.idle()
  const written = lines.all('access').slice(told).toSorted((a, b) => Number(a['path'] === '/a') - Number(b['path'] === '/a'))
  assert.equal(written.length, response.responses.length, `${name}: ${JSON.stringify(written)}`)
  const line = written.find(({ reason }) => reason !== null) as LogLine
  const [method, path] = parsed === undefined || (either && line['path'] === null) ? [line['method'], null] : parsed
  // Where an earlier answer has to be sent first, the line does not wait for the refusal's own bytes.
  const bytes = line['path'] === null && before !== '' ? line['bytes'] : refusal.body.length
  assert.deepEqual(lineOf(line), [method, path === '' ? null : path, row.status, row.reason, bytes, '127.0.0.1'], name)

  const forwarded = upstream.requests.slice(asked)
  if (row.inBody !== true) return assert.deepEqual(forwarded.map(({ target }) => target), before === '' ? [] : ['/first'], name)
  for (const request of forwarded) {
    assert.ok(['/a', '/first'].includes(request.target), `${name}: ${request.target}`)
    if (request.target === '/a') assert.equal((await request.body()).complete, false, name)
  }
}

for (const [title, row] of Object.entries({ ...refusedHeads, ...refusedBodies })) {
  for (const [way, { before, after }] of Object.entries(ways)) {
    // What comes late would still belong to what is waited for.
    if (row.server !== undefined && way.includes('behind it')) continue
    test(`refused with ${row.status}, ${way}: ${title}`, async (t) => {
      const gateway = await startBoth(t, { ...row.server !== undefined && { server: row.server } }, async (socket, request) => {
        if ((await request.body()).complete) await send(socket, answer({ body: 'done' }))
      })
      for (const [name, refused] of Object.entries(row.cases)) {
        if (refused.end === true && way.includes('behind it')) continue
        await check(gateway, row, { ...refused, parts: after(refused.parts) }, name, before)
      }
      assert.equal((await rawRequest(gateway.port, first)).status, 200)
    })
  }
}
