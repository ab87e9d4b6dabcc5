import { test } from 'node:test'
import { rawRequest } from '../../support/raw-client.ts'
import { startBoth } from './support.ts'

const cases: Record<string, string | Array<string | number>> = {
  plain: 'GET /a?x=1 HTTP/1.1\r\nHost: h\r\n\r\n',
  star: 'OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n',
  absolute: 'GET http://other.example:81/a/b?x HTTP/1.1\r\nHost: h\r\n\r\n',
  absoluteBare: 'GET http://other.example HTTP/1.1\r\nHost: h\r\n\r\n',
  absoluteQ: 'GET http://other.example?x=1 HTTP/1.1\r\nHost: h\r\n\r\n',
  absoluteUser: 'GET http://u:secret@other.example/ HTTP/1.1\r\nHost: h\r\n\r\n',
  noHost: 'GET /a HTTP/1.1\r\n\r\n',
  twoHosts: 'GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
  v09: 'GET /a HTTP/0.9\r\nHost: a\r\n\r\n',
  v20: 'GET /a HTTP/2.0\r\nHost: a\r\n\r\n',
  v30: 'GET /a HTTP/3.0\r\nHost: a\r\n\r\n',
  v12: 'GET /a HTTP/1.2\r\nHost: a\r\n\r\n',
  connect: 'CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n',
  trace: 'TRACE /a HTTP/1.1\r\nHost: a\r\n\r\n',
  zz: 'GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n',
  dots: 'GET /a/../b HTTP/1.1\r\nHost: a\r\n\r\n',
  obsfold: 'GET /a HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n',
  clte: 'POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  te2: 'POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  tegz: 'POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
  badchunk: 'POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n',
  pipelinedGarbage: 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n\0\0garbage\r\n\r\n',
  twoGarbage: ['GARBAGE\r\n\r\n', 50, 'more garbage\r\n\r\n', 50],
  latin: Buffer.from('GET /caf\xe9 HTTP/1.1\r\nHost: a\r\n\r\n', 'latin1') as never,
  many: 'GET /a HTTP/1.1\r\nHost: a\r\n' + Array.from({ length: 2100 }, (_, i) => `a${i}: 1\r\n`).join('') + '\r\n',
  huge: 'GET /a HTTP/1.1\r\nHost: a\r\nx: ' + 'y'.repeat(70000) + '\r\n\r\n',
  ws: 'GET /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
  h2c: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  fin: 'GET /a HTT',
}

for (const [name, parts] of Object.entries(cases)) {
  test(name, async (t) => {
    const g = await startBoth(t, {})
    const r = await rawRequest(g.port, parts, { timeoutMs: 1500, until: 'close', ...(name === 'fin' ? { end: true } : {}) })
    console.log('-----', name, r.status, r.ended, 'n=' + r.responses.length, JSON.stringify(r.raw.toString('latin1').slice(0, name === 'plain' ? 1000 : 300)))
    console.log('  upstream:', JSON.stringify(g.upstream.requests.map((q) => name === 'plain' || name.startsWith('abs') ? q.text : q.startLine)))
    await new Promise((resolve) => { setTimeout(resolve, 60) })
    for (const l of g.log.all('access')) console.log('  line:', JSON.stringify(l))
    for (const l of g.log.lines.filter((x) => Number(x['level']) > 30)) console.log('  !!:', JSON.stringify(l).slice(0, 400))
  })
}
