import { deepEqual, equal, notEqual } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { maxProxyHeaderBytes, parseProxyHeader } from '../../../lib/http/proxy-protocol.ts'

const text = (line: string): Buffer => Buffer.from(line, 'latin1')
const signature = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')
const none = { source: null, destination: null }

/** A header of version 2: command byte, family byte, what follows. */
function binary (command: number, family: number, ...rest: Buffer[]): Buffer {
  const body = Buffer.concat(rest)
  const prefix = Buffer.from([command, family, body.length >> 8, body.length & 255])
  return Buffer.concat([signature, prefix, body])
}
const hex = (digits: string): Buffer => Buffer.from(digits.replaceAll(' ', ''), 'hex')
const four = hex('c0000201 0a000002 d431 01bb')
const six = hex('20010db8000000000000000000000001 20010db8000000000000000000000002 d431 01bb')

const understood: [string, Buffer, object][] = [
  ['version 1, IPv4', text('PROXY TCP4 192.0.2.1 10.0.0.2 54321 443\r\n'), { source: { address: '192.0.2.1', port: 54321 }, destination: { address: '10.0.0.2', port: 443 } }],
  ['version 1, IPv6', text('PROXY TCP6 2001:db8::1 2001:DB8::2 54321 443\r\n'), { source: { address: '2001:db8::1', port: 54321 }, destination: { address: '2001:DB8::2', port: 443 } }],
  ['version 1, IPv4 mapped into IPv6', text('PROXY TCP6 ::ffff:192.0.2.1 ::ffff:10.0.0.2 1 0\r\n'), { source: { address: '::ffff:192.0.2.1', port: 1 }, destination: { address: '::ffff:10.0.0.2', port: 0 } }],
  ['version 1, the longest', text(`PROXY UNKNOWN ${'f'.repeat(91)}\r\n`), none],
  ['version 1, unknown', text('PROXY UNKNOWN\r\n'), none],
  ['version 1, unknown with addresses', text('PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n'), none],
  ['version 2, IPv4', binary(0x21, 0x11, four), { source: { address: '192.0.2.1', port: 54321 }, destination: { address: '10.0.0.2', port: 443 } }],
  ['version 2, IPv6', binary(0x21, 0x21, six), { source: { address: '2001:db8::1', port: 54321 }, destination: { address: '2001:db8::2', port: 443 } }],
  ['version 2, with more behind the addresses', binary(0x21, 0x11, four, hex('03 0004 12345678 04 0002 0000 ea 0003 010203')), { source: { address: '192.0.2.1', port: 54321 }, destination: { address: '10.0.0.2', port: 443 } }],
  ['version 2, local', binary(0x20, 0x00), none],
  ['version 2, local with addresses', binary(0x20, 0x11, four), none],
  ['version 2, local of a family that nobody knows', binary(0x20, 0xf7, hex('0102')), none],
  ['version 2, unspecified', binary(0x21, 0x00, hex('010203')), none],
  ['version 2, datagrams', binary(0x21, 0x12, four), none],
  ['version 2, Unix sockets', binary(0x21, 0x31, Buffer.alloc(216)), none],
  ['version 2, the longest', binary(0x21, 0x11, four, Buffer.alloc(maxProxyHeaderBytes - 16 - four.length)), { source: { address: '192.0.2.1', port: 54321 }, destination: { address: '10.0.0.2', port: 443 } }]
]

for (const [what, bytes, ends] of understood) {
  test(`a header is understood: ${what}`, () => {
    deepEqual(parseProxyHeader(bytes), { length: bytes.length, ...ends })
    deepEqual(parseProxyHeader(Buffer.concat([bytes, text('GET / HTTP/1.1\r\n')])), { length: bytes.length, ...ends })
    for (let length = 0; length < bytes.length; length++) equal(parseProxyHeader(bytes.subarray(0, length)), 'more', `${length} bytes`)
  })
}

const refused: [string, Buffer][] = [
  ['a request', text('GET / HTTP/1.1\r\n')],
  ['a request with a method that begins alike', text('PROPFIND / HTTP/1.1\r\n')],
  ['TLS', hex('160301 0200 01')],
  ['lower case', text('proxy TCP4 192.0.2.1 10.0.0.2 1 2\r\n')],
  ['no family', text('PROXY \r\n')],
  ['another family', text('PROXY UDP4 192.0.2.1 10.0.0.2 1 2\r\n')],
  ['two spaces', text('PROXY TCP4  192.0.2.1 10.0.0.2 1 2\r\n')],
  ['a tab', text('PROXY TCP4\t192.0.2.1 10.0.0.2 1 2\r\n')],
  ['a space at the end', text('PROXY TCP4 192.0.2.1 10.0.0.2 1 2 \r\n')],
  ['a missing port', text('PROXY TCP4 192.0.2.1 10.0.0.2 1\r\n')],
  ['a port out of range', text('PROXY TCP4 192.0.2.1 10.0.0.2 65536 2\r\n')],
  ['a port with a zero before it', text('PROXY TCP4 192.0.2.1 10.0.0.2 01 2\r\n')],
  ['a negative port', text('PROXY TCP4 192.0.2.1 10.0.0.2 -1 2\r\n')],
  ['an address out of range', text('PROXY TCP4 192.0.2.256 10.0.0.2 1 2\r\n')],
  ['an address with a zero before a number', text('PROXY TCP4 192.0.2.01 10.0.0.2 1 2\r\n')],
  ['a short address', text('PROXY TCP4 192.0.2 10.0.0.2 1 2\r\n')],
  ['IPv6 as IPv4', text('PROXY TCP4 2001:db8::1 10.0.0.2 1 2\r\n')],
  ['IPv4 as IPv6', text('PROXY TCP6 192.0.2.1 10.0.0.2 1 2\r\n')],
  ['a zone', text('PROXY TCP6 fe80::1%eth0 fe80::2 1 2\r\n')],
  ['a name', text('PROXY TCP4 client.example 10.0.0.2 1 2\r\n')],
  ['a line that is too long', text(`PROXY UNKNOWN ${'f'.repeat(92)}\r\n`)],
  ['a line without an end', text(`PROXY TCP4 ${' '.repeat(200)}`)],
  ['a damaged signature', Buffer.concat([signature.subarray(0, 11), Buffer.from([0x0b])])],
  ['another version', binary(0x31, 0x11, four)],
  ['another command', binary(0x22, 0x11, four)],
  ['a family that nobody knows', binary(0x21, 0x41, Buffer.alloc(300))],
  ['a transport that nobody knows', binary(0x21, 0x13, four)],
  ['too few bytes for IPv4', binary(0x21, 0x11, four.subarray(1))],
  ['too few bytes for IPv6', binary(0x21, 0x21, six.subarray(1))],
  ['too few bytes for Unix sockets', binary(0x21, 0x31, Buffer.alloc(215))],
  ['more bytes than are taken', binary(0x21, 0x11, four, Buffer.alloc(maxProxyHeaderBytes - 15 - four.length))],
  ['more bytes than are taken, local', binary(0x20, 0x00, Buffer.alloc(maxProxyHeaderBytes))]
]

for (const [what, bytes] of refused) {
  test(`it is no header: ${what}`, () => {
    equal(parseProxyHeader(bytes), 'invalid')
    // What is refused stays refused, whatever comes behind it.
    equal(parseProxyHeader(Buffer.concat([bytes, Buffer.alloc(8192)])), 'invalid')
  })
}

test('however bytes arrive, the verdict is the same, and it is final', () => {
  const begin = fc.constantFrom(...understood.map(([, bytes]) => bytes), ...refused.map(([, bytes]) => bytes), signature, text('PROXY '))
  const bytes = fc.tuple(begin, fc.nat(40), fc.uint8Array({ maxLength: 60 })).map(([start, cut, rest]) => Buffer.concat([start.subarray(0, Math.max(0, start.length - cut)), rest]))
  fc.assert(fc.property(bytes, (given) => {
    const whole = parseProxyHeader(given)
    let settled: unknown = 'more'
    for (let length = 0; length <= given.length; length++) {
      const now = parseProxyHeader(given.subarray(0, length))
      if (settled !== 'more') deepEqual(now, settled, `at ${length} bytes`)
      settled = now
    }
    deepEqual(settled, whole)
  }), { numRuns: 300 })
})

test('it never waits for more bytes than a header may have', () => {
  fc.assert(fc.property(fc.constantFrom(signature, text('PROXY '), Buffer.alloc(0)), fc.uint8Array({ minLength: maxProxyHeaderBytes, maxLength: maxProxyHeaderBytes + 50 }), (start, rest) => {
    notEqual(parseProxyHeader(Buffer.concat([start, rest])), 'more')
  }), { numRuns: 100 })
})
