import { equal, ok, throws } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { clientAddress, compileTrust, plainAddress } from '../../../lib/http/trust.ts'

describe('trust', () => {
  it('trusts nobody by default', () => {
    const trust = compileTrust([])
    for (const address of ['127.0.0.1', '::1', '', '10.0.0.1']) equal(trust(address), false)
  })

  const trusted = compileTrust(['10.0.0.0/8', '192.168.1.7', 'fd00::/8', '2001:db8::1', '::ffff:172.16.0.0/108'])
  const table: [string, boolean][] = [
    ['10.0.0.1', true], ['10.255.255.255', true], ['11.0.0.0', false], ['9.255.255.255', false],
    ['192.168.1.7', true], ['192.168.1.8', false],
    ['::ffff:10.1.2.3', true], ['::FFFF:10.1.2.3', true], ['::ffff:a01:203', true], ['::ffff:11.1.2.3', false],
    ['172.16.0.1', true], ['172.31.255.255', true], ['172.32.0.1', false],
    ['fd12::1', true], ['fc00::1', false], ['2001:db8::1', true], ['2001:DB8:0:0:0:0:0:1', true], ['2001:db8::2', false],
    ['', false], ['unknown', false], ['10.0.0', false], ['10.1', false], ['0x0a.0.0.1', false], ['012.0.0.1', false], ['167772161', false],
    ['10.0.0.1:80', false], [' 10.0.0.1', false], ['10.0.0.256', false], ['shop', false]
  ]
  for (const [address, expected] of table) {
    it(`${address === '' ? 'a unix socket' : address}: ${expected ? 'trusted' : 'not trusted'}`, () => { equal(trusted(address), expected) })
  }

  it('takes 0.0.0.0/0 and ::/0 as all of one family', () => {
    const v4 = compileTrust(['0.0.0.0/0'])
    ok(v4('1.2.3.4'))
    ok(!v4('2001:db8::1'))
    const v6 = compileTrust(['::/0'])
    ok(v6('2001:db8::1'))
    ok(!v6('1.2.3.4'))
  })

  it('names an entry that is neither an address nor a CIDR', () => {
    for (const entry of ['', 'shop', '10', '10/8', '10.0/16', '010.0.0.1', '10.0.0.0/33', '10.0.0.0/-1', '10.0.0.0/', '/8', '10.0.0.0/8/8', '::/129', '10.0.0.0/ 8', '10.0.0.0/1e1']) {
      throws(() => compileTrust(['10.0.0.1', entry]), (error) => error instanceof RangeError && error.message.includes(JSON.stringify(entry)), entry)
    }
  })
})

describe('plain address', () => {
  const table: [string | undefined, string][] = [[undefined, ''], ['', ''], ['1.2.3.4', '1.2.3.4'], ['::ffff:1.2.3.4', '1.2.3.4'], ['::1', '::1'], ['::ffff:1', '::ffff:1'], ['fe80::1%eth0', 'fe80::1%eth0']]
  for (const [address, plain] of table) it(String(address), () => { equal(plainAddress(address), plain) })
})

describe('client address', () => {
  const trust = compileTrust(['10.0.0.0/8', 'fd00::/8'])
  const table: [string, string, string | undefined, string][] = [
    ['no list', '10.0.0.1', undefined, '10.0.0.1'],
    ['an empty list', '10.0.0.1', '', '10.0.0.1'],
    ['a list of an untrusted peer is ignored', '203.0.113.9', '1.2.3.4', '203.0.113.9'],
    ['one entry', '10.0.0.1', '203.0.113.9', '203.0.113.9'],
    ['the rightmost untrusted entry wins', '10.0.0.1', '6.6.6.6, 203.0.113.9, 10.0.0.2', '203.0.113.9'],
    ['all trusted: the leftmost', '10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['no spaces', '10.0.0.1', '203.0.113.9,10.0.0.2', '203.0.113.9'],
    ['tabs and spaces', '10.0.0.1', ' \t203.0.113.9\t , 10.0.0.2 ', '203.0.113.9'],
    ['a port', '10.0.0.1', '203.0.113.9:4711', '203.0.113.9'],
    ['IPv6 in brackets with a port', '10.0.0.1', '[2001:db8::9]:4711', '2001:db8::9'],
    ['IPv6 in brackets', '10.0.0.1', '[2001:db8::9]', '2001:db8::9'],
    ['IPv6 in another spelling', '10.0.0.1', '2001:DB8:0::9', '2001:db8::9'],
    ['IPv4 mapped into IPv6', '10.0.0.1', '::FFFF:203.0.113.9', '203.0.113.9'],
    ['a trusted one mapped into IPv6', '10.0.0.1', '203.0.113.9, ::ffff:a00:2', '203.0.113.9'],
    ['an IPv6 peer', 'fd00::1', '203.0.113.9', '203.0.113.9'],
    ['garbage ends the walk', '10.0.0.1', '203.0.113.9, unknown, 10.0.0.2', '10.0.0.2'],
    ['garbage alone', '10.0.0.1', 'unknown', '10.0.0.1'],
    ['an empty entry ends the walk', '10.0.0.1', '203.0.113.9,,10.0.0.2', '10.0.0.2'],
    ['an open bracket is garbage', '10.0.0.1', '[::1', '10.0.0.1'],
    ['text behind a bracket is garbage', '10.0.0.1', '[::1]x', '10.0.0.1'],
    ['a number is no address', '10.0.0.1', '2130706433', '10.0.0.1'],
    ['a short form is no address', '10.0.0.1', '127.1', '10.0.0.1'],
    ['an octal form is no address', '10.0.0.1', '0177.0.0.1', '10.0.0.1'],
    ['a leading comma', '10.0.0.1', ',10.0.0.2', '10.0.0.2'],
    ['a unix socket', '', '1.2.3.4', '']
  ]
  for (const [name, peer, list, expected] of table) it(name, () => { equal(clientAddress(peer, list, trust), expected) })

  it('walks 32 hops at most', () => {
    const hops = (count: number) => `203.0.113.9${', 10.0.0.2'.repeat(count)}`
    equal(clientAddress('10.0.0.1', hops(31), trust), '203.0.113.9')
    equal(clientAddress('10.0.0.1', hops(32), trust), '10.0.0.2')
  })

  const near = fc.ipV4().map((address) => `10.${address.split('.').slice(1).join('.')}`)
  const far = fc.oneof(fc.ipV4(), fc.ipV6()).filter((address) => !trust(address) && !/^(?:10|0)\./.test(address))

  it('never returns a trusted address unless all are, and never one left of the last untrusted', () => {
    fc.assert(fc.property(near, fc.array(fc.oneof(near, far), { minLength: 1, maxLength: 8 }), (peer, list) => {
      const client = clientAddress(peer, list.join(', '), trust)
      equal(trust(client), list.every(trust), `${list.join(', ')} -> ${client}`)
      const last = list.findLast((address) => !trust(address))
      if (last !== undefined && last.includes('.') && !last.includes(':')) equal(client, last)
    }))
  })

  it('cannot be moved by what an untrusted client prepends', () => {
    fc.assert(fc.property(far, fc.array(near, { maxLength: 5 }), fc.string(), (client, proxies, forged) => {
      const honest = [client, ...proxies].join(', ')
      equal(clientAddress('10.0.0.1', `${forged},${honest}`, trust), clientAddress('10.0.0.1', honest, trust))
    }))
  })

  it('returns the peer or a well-formed address, whatever stands in the list', () => {
    fc.assert(fc.property(fc.string({ unit: fc.constantFrom('1', '0', '.', ':', ',', '[', ']', ' ', 'f', 'x', '%', '10.0.0.2') }), (list) => {
      const client = clientAddress('10.0.0.1', list, trust)
      ok(/^[0-9a-f.:%x]+$/.test(client), client)
    }), { numRuns: 1000 })
  })
})
