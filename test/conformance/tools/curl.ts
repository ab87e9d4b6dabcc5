import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Folder } from '../../e2e/listener/support.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Suite } from '../suite.ts'
import { run, type Ran } from './program.ts'
import { shop } from './shop.ts'

interface CurlCase {
  args: string[]
  /** Behind the gateway's address. */
  path?: string
  /** What it prints, given as a test of that and its exit code. */
  expect: (ran: Ran) => void
}

const ok = (what: RegExp) => ({ code, output, errors }: Ran): void => {
  assert.equal(code, 0, errors)
  assert.match(output, what)
}
const status = (wanted: number) => ok(new RegExp(`^HTTP/1\\.1 ${wanted} `, 'm'))
const file = '@@file'

const cases: Record<string, CurlCase> = {
  'HTTP/1.1': { args: ['--http1.1', '-i'], expect: ok(/^HTTP\/1\.1 200 OK\r\n[^]*"url":"\/echo"/) },
  'HTTP/1.0': { args: ['--http1.0', '-i'], expect: ok(/^HTTP\/1\.1 200 OK\r\n[^]*"url":"\/echo"/) },
  'HTTP/1.0, a body without length': { args: ['--http1.0', '-i'], path: '/chunks', expect: ok(/one two$/) },
  'answers of HTTP/0.9 allowed': { args: ['--http0.9', '-i'], expect: status(200) },
  'HTTP/2 by Upgrade, which is not taken': { args: ['--http2', '-i'], expect: status(200) },
  'HEAD': { args: ['-I'], path: '/large', expect: ok(/^content-length: 5000000\r$/mi) },
  'a method of its own': { args: ['-X', 'PROPFIND'], expect: ok(/"method":"PROPFIND"/) },
  'OPTIONS *': { args: ['-X', 'OPTIONS', '--request-target', '*'], expect: ok(/"url":"\*"/) },
  'a form': { args: ['-d', 'a=1&b=2'], expect: ok(/"length":7,"body":"a=1&b=2"/) },
  'a multipart form': { args: ['-F', 'a=1', '-F', `f=${file}`], expect: ok(/multipart\/form-data; boundary/) },
  'JSON': { args: ['--json', '{"a":1}'], expect: ok(/"content-type":"application\/json"[^]*"length":7/) },
  'an upload': { args: ['-T', file.slice(1)], expect: ok(/"method":"PUT"[^]*"length":300000/) },
  'an upload in chunks': { args: ['-T', file.slice(1), '-H', 'Transfer-Encoding: chunked'], expect: ok(/"transfer-encoding":"chunked"[^]*"length":300000/) },
  'an upload from a pipe': { args: ['-T', '-'], expect: ok(/"length":200000/) },
  'an upload that asks first': { args: ['-T', file.slice(1), '-H', 'Expect: 100-continue', '-v'], expect: (ran) => { ok(/"length":300000/)(ran); assert.match(ran.errors, /HTTP\/1\.1 100 Continue/) } },
  'an upload that does not ask': { args: ['-T', file.slice(1), '-H', 'Expect:'], expect: ok(/"length":300000/) },
  'a slow upload': { args: ['-T', file.slice(1), '--limit-rate', '1M'], expect: ok(/"length":300000/) },
  'a compressed answer': { args: ['--compressed'], path: '/gzip', expect: ok(/^(?:abcdefghijklmnopqrstuvwxyz){100}$/) },
  'a range': { args: ['-r', '2-5', '-i'], path: '/range', expect: ok(/206[^]*content-range: bytes 2-5\/26[^]*cdef$/i) },
  'a range to the end': { args: ['-r', '20-'], path: '/range', expect: ok(/^uvwxyz$/) },
  'a resumed download': { args: ['-C', '10', '-o', '-'], path: '/range', expect: ok(/^klmnopqrstuvwxyz$/) },
  'retries': { args: ['--retry', '3', '--retry-delay', '0', '--retry-max-time', '10'], path: '/flaky', expect: ok(/try 3$/) },
  'a redirect that is followed': { args: ['-L'], path: '/moved', expect: ok(/"url":"\/echo\?moved"/) },
  'another name, resolved by hand': { args: ['--resolve', 'shop.example:@@port:127.0.0.1', 'http://shop.example:@@port/echo'], path: '', expect: ok(/"x-forwarded-host":"shop\.example:/) },
  'a path as it is': { args: ['--path-as-is', '-i'], path: '/a/../b', expect: status(400) },
  'a path that curl mends': { args: [], path: '/a/../echo', expect: ok(/"url":"\/echo"/) },
  'a large answer': { args: ['-o', '/dev/null', '-w', '%{size_download}'], path: '/large', expect: ok(/^5000000$/) },
  'a slow download': { args: ['-o', '/dev/null', '-w', '%{size_download}', '--limit-rate', '4M'], path: '/large', expect: ok(/^5000000$/) },
  'two requests over one connection': { args: ['-w', '%{num_connects}\n', '-o', '/dev/null', '-o', '/dev/null', 'http://127.0.0.1:@@port/empty'], expect: ok(/^1\n0\n$/) },
  'a connection that the client closes': { args: ['-H', 'Connection: close', '-i'], expect: ok(/^Connection: close\r$/mi) },
  'an upstream that closes': { args: ['-i'], path: '/close', expect: ok(/closed$/) },
  'twenty at once': { args: ['-Z', '--parallel-max', '20', '-o', '/dev/null', '-w', '%{http_code}\n', 'http://127.0.0.1:@@port/echo?[1-19]'], expect: ok(/^(?:200\n){20}$|200/) },
  'no content': { args: ['-i'], path: '/empty', expect: status(204) },
  'fields without a value, and with a space': { args: ['-H', 'X-Empty;', '-H', 'X-Two: a  b'], expect: ok(/"x-empty":"","x-two":"a {2}b"/) },
  'a forged address': { args: ['-H', 'X-Forwarded-For: 10.0.0.1'], expect: (ran) => { ok(/"x-forwarded-for":"127\.0\.0\.1"/)(ran) } },
  'trailers wanted': { args: ['-H', 'TE: trailers', '-i'], expect: status(200) },
  'a tunnel asked for': { args: ['-X', 'CONNECT', '-i'], expect: status(400) },
  'credentials': { args: ['-u', 'a:b'], expect: ok(/"authorization":"Basic YTpi"/) },
  'a cookie': { args: ['-b', 'a=1; b=2'], expect: ok(/"cookie":"a=1; b=2"/) }
}

const http2Cases: Record<string, CurlCase> = {
  'HTTP/2 without TLS': { args: ['--http2-prior-knowledge', '-i', '@@clear/echo'], expect: ok(/^HTTP\/2 200 \r\n[^]*"url":"\/echo"/) },
  'HTTP/1.1 at the same port': { args: ['--http1.1', '-i', '@@clear/echo'], expect: status(200) },
  'HTTP/2 by Upgrade where HTTP/2 is spoken': { args: ['--http2', '-i', '@@clear/echo'], expect: status(200) },
  'HTTP/2, an upload': { args: ['--http2-prior-knowledge', '-T', file.slice(1), '@@clear/echo'], expect: ok(/"method":"PUT"[^]*"length":300000/) },
  'HTTP/2, a form': { args: ['--http2-prior-knowledge', '-d', 'a=1&b=2', '@@clear/echo'], expect: ok(/"length":7,"body":"a=1&b=2"/) },
  'HTTP/2, HEAD': { args: ['--http2-prior-knowledge', '-I', '@@clear/large'], expect: ok(/^content-length: 5000000\r$/m) },
  'HTTP/2, a large answer': { args: ['--http2-prior-knowledge', '-o', '/dev/null', '-w', '%{http_version} %{size_download}', '@@clear/large'], expect: ok(/^2 5000000$/) },
  'ALPN: both': { args: ['--http2', '-o', '/dev/null', '-w', '%{http_version}', '@@secure/echo'], expect: ok(/^2$/) },
  'ALPN: HTTP/1.1 alone': { args: ['--http1.1', '-o', '/dev/null', '-w', '%{http_version}', '@@secure/echo'], expect: ok(/^1\.1$/) },
  'ALPN: none': { args: ['--no-alpn', '-o', '/dev/null', '-w', '%{http_version}', '@@secure/echo'], expect: ok(/^1\.1$/) }
}

export const curl: Suite = {
  name: 'curl',
  about: 'curl with the options that change what it sends',
  needs: ['curl'],
  quick: true,
  async run (report) {
    const upstream = await shop(report)
    const gateway = await startGateway(report, { upstreams: [upstream.url] })
    const folder = mkdtempSync(join(tmpdir(), 'breakwater-curl-'))
    report.after(() => { rmSync(folder, { recursive: true, force: true }) })
    const upload = join(folder, 'upload')
    writeFileSync(upload, 'u'.repeat(300_000))
    const filled = (port: number) => (arg: string): string => arg.replaceAll('@@port', String(port)).replace('@@file', `@${upload}`).replace(/^@file$/, upload)
    for (const [name, { args, path = '/echo', expect }] of Object.entries(cases)) {
      await report.check(name, async () => {
        const own = args.map(filled(gateway.port))
        const target = path === '' ? [] : [`http://127.0.0.1:${gateway.port}${path}`]
        expect(await run('curl', ['-sS', ...own, ...target], { input: Buffer.alloc(200_000, 'p') }))
      })
    }
    const balanced = await startGateway(report, { upstreams: [upstream.url], server: { proxyProtocolFrom: ['127.0.0.1'] } })
    await report.check('a PROXY header', async () => { ok(/"x-forwarded-for":"127\.0\.0\.1"/)(await run('curl', ['-sS', '--haproxy-protocol', `http://127.0.0.1:${balanced.port}/echo`])) })
    await report.check('a PROXY header where none may be', async () => { status(400)(await run('curl', ['-sS', '-i', '--haproxy-protocol', `http://127.0.0.1:${gateway.port}/echo`])) })
    const path = join(folder, 'socket')
    await report.check('over a Unix socket', async () => {
      const local = await startGateway(report, { upstreams: [upstream.url] })
      local.app.server.close()
      const closed = new Promise((resolve) => { local.app.server.once('close', resolve) })
      local.app.server.closeIdleConnections()
      await closed
      await new Promise<void>((resolve) => { local.app.server.listen(path, resolve) })
      ok(/"url":"\/echo"/)(await run('curl', ['-sS', '--unix-socket', path, 'http://shop/echo']))
    })
    const both = await startGateway(report, { upstreams: [upstream.url], server: { http2: { cleartext: true } } })
    const secure = await startGateway(report, { upstreams: [upstream.url], server: { tls: { certificates: [new Folder(report).issue('shop.example')] } } })
    for (const [name, { args, expect }] of Object.entries(http2Cases)) {
      await report.check(name, async () => {
        const own = args.map((arg) => arg.replace('@@clear', `http://127.0.0.1:${both.port}`).replace('@@secure', `https://127.0.0.1:${secure.port}`)).map(filled(both.port))
        expect(await run('curl', ['-sSk', ...own]))
      })
    }
    for (const each of [gateway, both, secure]) await each.idle()
  }
}
