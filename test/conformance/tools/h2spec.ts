import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startGateway } from '../../support/gateway.ts'
import type { Suite } from '../suite.ts'
import { run } from './program.ts'
import { shop } from './shop.ts'

/** Cases that end otherwise than h2spec looks for, and why that is right or not ours to change. */
export const otherwise: ReadonlyArray<{ name: string, why: string, of: RegExp }> = [
  { name: 'another preface is HTTP/1', why: 'The port speaks HTTP/1 as well: bytes that are not the preface are judged as a request of it, answered with 400, and the connection ends.', of: /Sends invalid connection preface/ },
  { name: 'frames on closed streams are passed over', why: 'nghttp2 forgets a stream that is closed, and reads and drops what still comes on it. RFC 9113 section 5.1 wants the connection to end in some of these cases. Nothing of such frames becomes a request.', of: /: closed: Sends a (?:DATA|HEADERS) frame/ },
  { name: 'smaller stream identifiers are passed over', why: 'nghttp2 takes them for streams that are closed already: no request comes of them, and those after them are served.', of: /numerically smaller than previous/ },
  { name: 'an answer to no PING ends the connection', why: 'Node takes a PING with ACK that it has not asked for as a protocol error. Only a broken client sends one.', of: /Sends a PING frame with ACK/ },
  { name: 'windows that overflow end with another code', why: 'Node closes the connection itself, and its GOAWAY says INTERNAL_ERROR where nghttp2 would have said FLOW_CONTROL_ERROR. Only a broken client sees it.', of: /WINDOW_UPDATE frames increasing the flow control window to above/ }
]

const unescaped = (text: string): string => text.replaceAll('&#34;', '"').replaceAll('&#39;', '\'').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&#xA;', '\n').replaceAll('&amp;', '&')

export const h2spec: Suite = {
  name: 'h2spec',
  about: 'the conformance suite of that name for HTTP/2 and HPACK, over a connection without TLS',
  needs: ['h2spec'],
  quick: false,
  async run (report) {
    const upstream = await shop(report)
    const gateway = await startGateway(report, { upstreams: [upstream.url], server: { headersTimeoutMs: 1000, http2: { cleartext: true } } })
    const folder = mkdtempSync(join(tmpdir(), 'breakwater-h2spec-'))
    report.after(() => { rmSync(folder, { recursive: true, force: true }) })
    const file = join(folder, 'report.xml')
    await run('h2spec', ['-h', '127.0.0.1', '-p', String(gateway.port), '-o', '2', '-j', file], { timeoutMs: 300_000 })
    for (const [, attributes = '', , content = ''] of readFileSync(file, 'utf8').matchAll(/<testcase ([^>]*?)(\/>|>([^]*?)<\/testcase>)/g)) {
      const attribute = (name: string): string => unescaped(new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? '')
      const name = `${attribute('package')}: ${attribute('classname')}`
      const failed = /<(?:failure|error)\b[^>]*>([^]*?)<\//.exec(content)?.[1]
      const why = otherwise.find(({ of }) => of.test(name))
      if (failed === undefined) report.pass()
      else if (why !== undefined) report.explain(name, why.name)
      else report.fail(name, unescaped(failed).trim())
    }
    await report.check('every place is given back', () => gateway.idle())
  }
}
