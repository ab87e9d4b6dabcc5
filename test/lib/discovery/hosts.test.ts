import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findInHosts } from '../../../lib/discovery/hosts.ts'

const text = `
# 10.9.9.9 shop.test
127.0.0.1	localhost
::1 localhost ip6-localhost
10.0.0.1   shop.test  Other.Test   # the first
10.0.0.2 other.test.
10.0.0.1 shop.test
fe80::1%lo0 shop.test
nonsense shop.test
10.0.0.3
`

test('names are found in any letters, with all their addresses, each once', () => {
  assert.deepEqual([...findInHosts(text, new Set(['shop.test', 'other.test', 'localhost', 'gone.test']))], [
    ['localhost', ['127.0.0.1', '::1']],
    ['shop.test', ['10.0.0.1']],
    ['other.test', ['10.0.0.1', '10.0.0.2']]
  ])
})

test('lines may end as on Windows, and an empty file has no names', () => {
  assert.deepEqual([...findInHosts('10.0.0.1 shop.test\r\n10.0.0.2 shop.test\r\n', new Set(['shop.test']))], [['shop.test', ['10.0.0.1', '10.0.0.2']]])
  assert.equal(findInHosts('', new Set(['shop.test'])).size, 0)
  assert.equal(findInHosts(text, new Set()).size, 0)
})
