import { equal, notEqual } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { subnetOf } from '../../../lib/http/subnet.ts'

const table: [address: string, subnet: string][] = [
  ['10.0.0.1', '10.0.0.1'],
  ['', ''],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::'],
  ['2001:DB8:1:2::', '2001:db8:1:2::'],
  ['2001:0db8:0001:0002::7', '2001:db8:1:2::'],
  ['2001:db8::1', '2001:db8:0:0::'],
  ['::1', '0:0:0:0::'],
  ['::', '0:0:0:0::'],
  ['1::2:3:4:5:6:7', '1:0:2:3::'],
  ['::2:3:4:5:6:7:8', '0:2:3:4::'],
  ['64:ff9b::10.0.0.1', '64:ff9b:0:0::'],
  ['fe80::1%eth0', 'fe80:0:0:0::'],
  ['::ffff:10.0.0.1', '::ffff:10.0.0.1']
]

describe('subnet of a client', () => {
  for (const [address, subnet] of table) it(`${JSON.stringify(address)} is of ${JSON.stringify(subnet)}`, () => { equal(subnetOf(address), subnet) })

  const groups = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff })), { minLength: 8, maxLength: 8 }).filter((parts) => parts.slice(0, 5).some((part) => part !== 0))

  it('is one for all addresses of a /64 in any spelling, and another for any other network', () => {
    fc.assert(fc.property(groups, groups, (one, other) => {
      const sibling = [...one.slice(0, 4), ...other.slice(4)]
      const spellings = (parts: number[]) => {
        const address = new ipaddr.IPv6(parts)
        return [address.toString(), address.toRFC5952String(), address.toNormalizedString(), address.toNormalizedString().toUpperCase()]
      }
      for (const text of [...spellings(one), ...spellings(sibling)]) if (!text.startsWith('::ffff:')) equal(subnetOf(text), subnetOf(one.map((part) => part.toString(16)).join(':')), text)
      if (one.slice(0, 4).some((part, i) => part !== other[i])) notEqual(subnetOf(one.map((part) => part.toString(16)).join(':')), subnetOf(other.map((part) => part.toString(16)).join(':')))
    }))
  })
})
