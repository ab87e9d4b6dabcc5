import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isLoopback, parseAddress, parseRange } from '../../../lib/http/address.ts'

test('only what is plainly an address is one', () => {
  for (const [text, address] of [['1.2.3.4', '1.2.3.4'], ['::ffff:1.2.3.4', '1.2.3.4'], ['2001:DB8::1', '2001:db8::1'], ['fe80::1%eth0', 'fe80::1%eth0']] as const) assert.equal(parseAddress(text)?.toString(), address)
  for (const text of ['', '1', '0x7f.1', '010.0.0.1', '1.2.3', '1.2.3.4:80', '[::1]', 'localhost']) assert.equal(parseAddress(text), null, text)
})

test('a range is an address or a CIDR, and neither of a zone', () => {
  for (const [text, network, bits] of [['10.0.0.0/8', '10.0.0.0', 8], ['10.0.0.1', '10.0.0.1', 32], ['fd00::/8', 'fd00::', 8], ['::ffff:10.0.0.0/104', '10.0.0.0', 8]] as const) {
    const range = parseRange(text)
    assert.deepEqual([range?.[0].toString(), range?.[1]], [network, bits], text)
  }
  for (const text of ['', 'shop', '10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/8/8', 'fe80::1%eth0', 'fe80::%eth0/64']) assert.equal(parseRange(text), null, text)
})

test('loopback addresses', () => {
  for (const address of ['127.0.0.1', '127.9.8.7', '::1', '::ffff:127.0.0.1']) assert.ok(isLoopback(address), address)
  for (const address of ['', '0.0.0.0', '::', '10.0.0.1', '128.0.0.1', '::ffff:10.0.0.1', 'fe80::1', 'localhost', '2130706433', '0x7f.1']) assert.ok(!isLoopback(address), address)
})
