import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectionName, unacknowledged } from '../../lib/tcp-table.ts'

const ends = (localAddress: string, localPort: number, remoteAddress: string, remotePort: number) => ({ localAddress, localPort, remoteAddress, remotePort })

// Lines as the kernel prints them.
const table = [
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
  '   0: 0100007F:1F90 00000000:0000 0A 00000000:00000007 00:00000000 00000000     0        0 155 1 0000000019d75414 100 0 0 10 0',
  '   1: 0100007F:1F90 0100007F:C350 01 0002A3F0:00000000 01:00000014 00000000     0        0 156 3 000000001a 20 4 30 10 -1',
  '   2: 0100007F:C350 0100007F:1F90 01 00000000:0000F000 00:00000000 00000000     0        0 157 1 000000001b 20 4 30 10 -1',
  '   3: 0F02000A:01BB 7B7100CB:0050 01 00000010:00000000 00:00000000 00000000     0        0 158 1 000000001c 20 4 30 10 -1',
  ''
].join('\n')

for (const [name, each, bytes] of [
  ['one end of a connection', ends('127.0.0.1', 8080, '127.0.0.1', 50000), 0x2a3f0],
  ['its other end', ends('127.0.0.1', 50000, '127.0.0.1', 8080), 0],
  ['addresses by their bytes', ends('10.0.2.15', 443, '203.0.113.123', 80), 16],
  ['a connection that is not there', ends('127.0.0.1', 8081, '127.0.0.1', 50000), -1]
] as const) {
  test(`what waits for an acknowledgement is found in the table: ${name}`, () => {
    assert.equal(unacknowledged(table, connectionName(each, true)), bytes)
  })
}

test('IPv6 is named by its four numbers, without its zone', () => {
  assert.equal(connectionName(ends('::1', 80, '::ffff:127.0.0.1', 1), true), '00000000000000000000000001000000:0050 0000000000000000FFFF00000100007F:0001 ')
  assert.equal(connectionName(ends('fe80::1%eth0', 80, '2001:db8::2', 1), true), '000080FE000000000000000001000000:0050 B80D0120000000000000000002000000:0001 ')
})

test('on a machine of the other byte order the bytes stand as they are', () => {
  assert.equal(connectionName(ends('10.0.2.15', 443, '::1', 80), false), '0A00020F:01BB 00000000000000000000000000000001:0050 ')
})
