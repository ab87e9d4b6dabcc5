import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { beginsAsHttp } from '../../../lib/http/plain-http.ts'

test('a method and a space begin a request of HTTP', () => {
  for (const [text, expected] of [
    ['GET /', true], ['M-SEARCH *', true], ['PRI * HTTP/2.0', true], ['', 'more'], ['G', 'more'], ['GET', 'more'], [`${'A'.repeat(31)} `, true],
    [' GET', false], ['get /', false], ['\x16\x03\x01', false], ['\x80\x2e', false], ['GET\t', false], ['SSH-2.0', false], ['A'.repeat(32), false], ['A'.repeat(31), 'more']
  ] as const) equal(beginsAsHttp(Buffer.from(text, 'latin1')), expected, text)
})
