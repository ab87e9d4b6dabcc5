/** Requests of HTTP/2 that would be others in HTTP/1.1: h2.CL, h2.TE, and line ends where no library would put them. */
import assert from 'node:assert/strict'
import { startGateway, type Gateway } from '../../support/gateway.ts'
import { block, data, flags, frame, frameClient, headers } from '../../support/http2-frames.ts'
import { recorder, type Recorder } from '../../support/recorder.ts'
import { until } from '../../support/wait.ts'
import type { Report, Suite } from '../suite.ts'
import { inLanes, nextClient } from '../talk.ts'
import { smuggled } from './framing.ts'

type Fields = ReadonlyArray<readonly [string, string]>
interface DowngradeCase {
  fields: Fields
  /** Bytes of the body; left out: none, and the head ends the stream. */
  body?: string
  trailers?: Fields
}

const ordinary = (method = 'POST', path = '/first', authority = 'shop'): Fields => [[':method', method], [':scheme', 'http'], [':path', path], [':authority', authority]]
const post = (...more: Fields): Fields => [...ordinary(), ...more]
const length = String(smuggled.length)

/** Those that must be served are told by `ok:`. */
const cases: Record<string, DowngradeCase> = {
  'ok: a body without length': { fields: post(), body: smuggled },
  'ok: a body with its length': { fields: post(['content-length', length]), body: smuggled },
  'ok: a body that looks like chunks': { fields: post(), body: `0\r\n\r\n${smuggled}` },
  'ok: no body': { fields: ordinary('GET') },
  'ok: cookies in several fields': { fields: [...ordinary('GET'), ['cookie', 'a=1'], ['cookie', 'b=2']] },
  'ok: TE: trailers': { fields: [...ordinary('GET'), ['te', 'trailers']] },
  'ok: an expectation': { fields: post(['expect', '100-continue'], ['content-length', '5']), body: 'hello' },
  'h2.CL: a length of zero, and a body': { fields: post(['content-length', '0']), body: smuggled },
  'h2.CL: a length that is too small': { fields: post(['content-length', '3']), body: smuggled },
  'h2.CL: a length that is too large': { fields: post(['content-length', '1000']), body: 'hello' },
  'h2.CL: two lengths': { fields: post(['content-length', '0'], ['content-length', length]), body: smuggled },
  'h2.CL: a list of lengths': { fields: post(['content-length', `0, ${length}`]), body: smuggled },
  'h2.CL: a sign': { fields: post(['content-length', `+${length}`]), body: smuggled },
  'h2.CL: nothing': { fields: post(['content-length', '']), body: smuggled },
  'h2.CL: a length without body': { fields: post(['content-length', '5']) },
  'h2.CL: a GET with too small a length': { fields: [...ordinary('GET'), ['content-length', '1']], body: smuggled },
  'h2.TE: chunked': { fields: post(['transfer-encoding', 'chunked']), body: `0\r\n\r\n${smuggled}` },
  'h2.TE: chunked, with a space': { fields: post(['transfer-encoding', ' chunked']), body: `0\r\n\r\n${smuggled}` },
  'h2.TE: chunked in capitals': { fields: post(['Transfer-Encoding', 'chunked']), body: `0\r\n\r\n${smuggled}` },
  'h2.TE: behind a line end in a value': { fields: post(['x-a', 'b\r\ntransfer-encoding: chunked']), body: `0\r\n\r\n${smuggled}` },
  'h2.TE: behind a bare LF in a value': { fields: post(['x-a', 'b\ntransfer-encoding: chunked']), body: `0\r\n\r\n${smuggled}` },
  'h2.TE: behind a bare CR in a value': { fields: post(['x-a', 'b\rtransfer-encoding: chunked']), body: `0\r\n\r\n${smuggled}` },
  'h2.TE: behind a line end in a name': { fields: post(['x-a: b\r\ntransfer-encoding', 'chunked']), body: `0\r\n\r\n${smuggled}` },
  'h2.TE: in a name with a colon': { fields: post(['transfer-encoding: chunked\r\nx', '1']), body: `0\r\n\r\n${smuggled}` },
  'h2.TE: in the trailers': { fields: post(), body: 'hello', trailers: [['transfer-encoding', 'chunked']] },
  'h2.CL: in the trailers': { fields: post(), body: 'hello', trailers: [['content-length', '0']] },
  'a request behind the path': { fields: ordinary('GET', '/first HTTP/1.1\r\nHost: shop\r\n\r\nGET /smuggled') },
  'a space in the path': { fields: ordinary('GET', '/first /smuggled') },
  'a line end in the path': { fields: ordinary('GET', '/first\r\nx-a: b') },
  'a tab in the path': { fields: ordinary('GET', '/first\tx') },
  'a fragment in the path': { fields: ordinary('GET', '/first#a') },
  'an empty path': { fields: ordinary('GET', '') },
  'a path without its slash': { fields: ordinary('GET', 'first') },
  'dot segments in the path': { fields: ordinary('GET', '/a/../first') },
  'an asterisk': { fields: ordinary('GET', '*') },
  'a line end in the method': { fields: ordinary('GET /smuggled HTTP/1.1\r\nx: y\r\n\r\nGET') },
  'a space in the method': { fields: ordinary('GET /smuggled') },
  'an empty method': { fields: ordinary('') },
  'a line end in the authority': { fields: ordinary('GET', '/first', 'shop\r\nx-a: b') },
  'user information in the authority': { fields: ordinary('GET', '/first', 'a@shop') },
  'a path in the authority': { fields: ordinary('GET', '/first', 'shop/a') },
  'a Host of another name': { fields: [...ordinary('GET'), ['host', 'other']] },
  'a Host that is bad': { fields: [...ordinary('GET'), ['host', 'a b']] },
  'a line end in the scheme': { fields: [[':method', 'GET'], [':scheme', 'http\r\nx: y'], [':path', '/first'], [':authority', 'shop']] },
  'a path in the scheme': { fields: [[':method', 'GET'], [':scheme', 'http://shop/smuggled?'], [':path', '/first'], [':authority', 'shop']] },
  'no path': { fields: [[':method', 'GET'], [':scheme', 'http'], [':authority', 'shop']] },
  'two paths': { fields: [...ordinary('GET'), [':path', '/smuggled']] },
  'two methods': { fields: [...ordinary('GET'), [':method', 'POST']] },
  'a pseudo-field behind the others': { fields: [[':method', 'GET'], [':scheme', 'http'], ['x-a', '1'], [':path', '/first'], [':authority', 'shop']] },
  'an unknown pseudo-field': { fields: [...ordinary('GET'), [':x', '1']] },
  'a pseudo-field of answers': { fields: [...ordinary('GET'), [':status', '200']] },
  'a pseudo-field among the trailers': { fields: post(), body: 'hello', trailers: [[':path', '/smuggled']] },
  'a name in capitals': { fields: [...ordinary('GET'), ['X-A', '1']] },
  'a name with a colon': { fields: [...ordinary('GET'), ['x:a', '1']] },
  'a name with a space': { fields: [...ordinary('GET'), ['x a', '1']] },
  'an empty name': { fields: [...ordinary('GET'), ['', '1']] },
  'a NUL in a value': { fields: [...ordinary('GET'), ['x-a', 'a\0b']] },
  'a space around a value': { fields: [...ordinary('GET'), ['x-a', ' a ']] },
  'Connection': { fields: [...ordinary('GET'), ['connection', 'close']] },
  'Keep-Alive': { fields: [...ordinary('GET'), ['keep-alive', 'timeout=5']] },
  'Proxy-Connection': { fields: [...ordinary('GET'), ['proxy-connection', 'close']] },
  'Upgrade': { fields: [...ordinary('GET'), ['upgrade', 'websocket']] },
  'TE: gzip': { fields: [...ordinary('GET'), ['te', 'gzip']] },
  'CONNECT with a path': { fields: ordinary('CONNECT') },
  'CONNECT': { fields: [[':method', 'CONNECT'], [':authority', 'shop:80']] },
  'TRACE': { fields: ordinary('TRACE') }
}

interface Lane { gateway: Gateway, upstream: Recorder }

async function open (report: Report): Promise<Lane> {
  const upstream = await recorder(report)
  const gateway = await startGateway(report, { upstreams: [upstream.url], pool: { connections: { max: 1 } }, server: { headersTimeoutMs: 500, requestTimeoutMs: 500, http2: { cleartext: true } } })
  return { gateway, upstream }
}

async function probe (report: Report, { gateway, upstream }: Lane, name: string, { fields, body, trailers }: DowngradeCase): Promise<void> {
  upstream.clear()
  const client = await frameClient(report, gateway.port)
  client.send(headers(1, fields, body === undefined && trailers === undefined))
  if (body !== undefined) client.send(data(1, Buffer.from(body, 'latin1'), trailers === undefined))
  if (trailers !== undefined) client.send(frame('HEADERS', flags.END_HEADERS | flags.END_STREAM, 1, block(trailers)))
  // An answer, a refusal of the stream, or the connection's end.
  await until(() => client.ended || client.frames.some(({ type, id, flags: set }) => type === 'GOAWAY' || (id === 1 && (type === 'RST_STREAM' || ((set & flags.END_STREAM) !== 0 && type !== 'SETTINGS')))), { what: 'an end of the stream' })
  client.close()
  await gateway.idle()
  await upstream.settled()
  assert.deepEqual(upstream.problems, [])
  const [first, ...more] = upstream.requests
  assert.deepEqual(more.map(({ method, target }) => `${method} ${target}`), [], 'more than one request arrived')
  if (name.startsWith('ok: ')) assert.ok(first !== undefined, 'nothing arrived')
  if (first !== undefined) {
    const asked = new Map(fields)
    assert.deepEqual([first.method, first.target, first.body.toString('latin1')], [asked.get(':method'), asked.get(':path'), body ?? ''])
    assert.ok(!first.headers.some(([field]) => field.startsWith(':') || field === 'transfer-encoding' && first.framing !== 'chunked'))
  }
  await nextClient(gateway.port, upstream)
}

export const downgrade: Suite = {
  name: 'downgrade',
  about: 'requests of HTTP/2 whose fields or lengths would make other requests of them in HTTP/1.1',
  needs: [],
  quick: true,
  async run (report) {
    const lanes = await Promise.all(Array.from({ length: 4 }, () => open(report)))
    await inLanes(lanes, Object.entries(cases), (lane, [name, each]) => report.check(name, () => probe(report, lane, name, each)))
  }
}
