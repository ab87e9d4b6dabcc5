import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkTarget } from '../../../lib/health/target.ts'
import { parseUpstreamUrl } from '../../../lib/upstream-url.ts'

const table: Array<[url: string, host: string, port: number | null, origin: string, asked: string, own: boolean]> = [
  ['http://shop:8080', 'shop:8080', null, 'http://shop:8080', 'shop:8080', true],
  ['http://shop:8080/base', 'shop:8080', 8081, 'http://shop:8081', 'shop:8081', false],
  ['http://shop:8080', 'shop:8080', 8080, 'http://shop:8080', 'shop:8080', true],
  ['http://shop', 'shop', 80, 'http://shop', 'shop', true],
  ['http://shop', 'shop', 443, 'http://shop:443', 'shop:443', false],
  ['http://shop:8080', 'shop:8080', 80, 'http://shop', 'shop', false],
  ['https://shop', 'shop', 8443, 'https://shop:8443', 'shop:8443', false],
  ['https://shop:8443', 'shop:8443', 443, 'https://shop', 'shop', false],
  ['http://[::1]:8080', '[::1]:8080', 9, 'http://[::1]:9', '[::1]:9', false],
  ['http://[::1]', '[::1]', 9, 'http://[::1]:9', '[::1]:9', false],
  ['http://10.0.0.1:8080', 'shop.internal:8080', 9, 'http://10.0.0.1:9', 'shop.internal:9', false],
  ['unix:/run/shop.sock', 'localhost', 9, 'http://localhost', 'localhost', true]
]

for (const [url, host, port, origin, asked, own] of table) {
  test(`the check of ${url}${port === null ? '' : ` at port ${port}`} goes to ${origin} and asks for ${asked}`, () => {
    assert.deepEqual(checkTarget(parseUpstreamUrl(url), host, port), { origin, host: asked, own })
  })
}
