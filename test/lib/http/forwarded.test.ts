import { deepEqual, equal, ok } from 'node:assert/strict'
import { isIP } from 'node:net'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { extendVia, Peer } from '../../../lib/http/forwarded.ts'
import type { GivenFields } from '../../../lib/http/request-head.ts'
import { compileTrust } from '../../../lib/http/trust.ts'

const nothing: GivenFields = { forwardedFor: '', forwardedProto: '', forwardedHost: '', forwardedPort: '', forwardedPrefix: '', forwarded: '', via: '', requestId: '' }
const trust = compileTrust(['10.0.0.0/8', 'fd00::/8'])

/** Bits of Forwarded in any order. */
const words = fc.array(fc.constantFrom('for=', 'For=', 'for', '=', '"', '\\', ';', ',', ' ', '[', ']', ':', '%', '_', '.', '1', '203.0.113.9', '10.0.0.2', '::1', 'fd00::7', 'unknown', 'proto=http', 'host="a'), { maxLength: 16 })
  .map((parts) => parts.join(''))

interface Request { peer?: string, scheme?: 'http' | 'https', given?: Partial<GivenFields>, host?: string, client?: string, prefix?: string }

function append ({ peer = '203.0.113.9', scheme = 'http', given = {}, host = 'shop.example', client = peer, prefix = '' }: Request): Record<string, string> {
  const fields: string[] = []
  new Peer(peer, trust, scheme, 8080).append(fields, { ...nothing, ...given }, host, client, prefix)
  return asRecord(fields)
}

function asRecord (fields: string[]): Record<string, string> {
  const record: Record<string, string> = {}
  for (let i = 0; i < fields.length; i += 2) {
    equal(record[fields[i]!], undefined, `${fields[i]} is there twice`)
    record[fields[i]!] = fields[i + 1]!
  }
  return record
}

const forged: Partial<GivenFields> = {
  forwardedFor: '1.2.3.4', forwardedProto: 'https', forwardedHost: 'bank.example', forwardedPort: '443', forwardedPrefix: '/admin', forwarded: 'for=1.2.3.4', via: '1.0 fred'
}

describe('the fields that the proxy owns', () => {
  it('tells what is known of a client', () => {
    deepEqual(append({}), {
      'x-forwarded-for': '203.0.113.9',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'shop.example',
      'x-forwarded-port': '8080',
      'x-real-ip': '203.0.113.9',
      'forwarded': 'for=203.0.113.9;host=shop.example;proto=http',
      'via': '1.1 breakwater'
    })
  })

  it('replaces what an untrusted peer says', () => {
    deepEqual(append({ given: forged, scheme: 'https', prefix: '/api' }), { ...append({ scheme: 'https' }), 'x-forwarded-prefix': '/api' })
  })

  it('tells the same chain in Forwarded where a trusted peer says only X-Forwarded-For', () => {
    equal(append({ peer: '10.0.0.1', given: { forwardedFor: '203.0.113.9, fd00::7,[::1], spoof"ed' } })['forwarded'],
      'for=203.0.113.9, for="[fd00::7]", for="[::1]", for=unknown, for=10.0.0.1;host=shop.example;proto=http')
  })

  const told: Array<[name: string, given: Partial<GivenFields>, forwardedFor: string, proto: string, host: string]> = [
    ['one proxy', { forwarded: 'for=203.0.113.9;proto=https;host=bank.example' }, '203.0.113.9', 'https', 'bank.example'],
    ['two', { forwarded: 'for=203.0.113.9;proto=https;host=bank.example, for=10.0.0.2;proto=http;host=inner' }, '203.0.113.9, 10.0.0.2', 'https', 'bank.example'],
    ['one that a client has written before', { forwarded: 'for=1.1.1.1;proto=https;host=evil, for=203.0.113.9;proto=http;host="shop.example:81"' }, '1.1.1.1, 203.0.113.9', 'http', 'shop.example:81'],
    ['IPv6 with a port', { forwarded: 'for="[2001:db8::1]:4711";proto=HTTPS' }, '2001:db8::1', 'https', 'shop.example'],
    ['nobody', { forwarded: 'for=_hidden;proto=https, by=x' }, 'unknown, unknown', 'http', 'shop.example'],
    ['a scheme and a host that are none', { forwarded: 'for=203.0.113.9;proto="a b";host="u@evil/"' }, '203.0.113.9', 'http', 'shop.example'],
    ['nothing that can be read', { forwarded: 'for=;;"' }, '', 'http', 'shop.example'],
    ['the same thing twice', { forwarded: 'for=1.1.1.1;proto=https;proto=http' }, '', 'http', 'shop.example'],
    ['a scheme beside it', { forwarded: 'for=203.0.113.9;proto=https', forwardedProto: 'wss' }, '203.0.113.9', 'wss', 'shop.example'],
    ['X-Forwarded-For beside it, which is kept', { forwarded: 'for=1.1.1.1;proto=https;host=bank.example', forwardedFor: '203.0.113.9' }, '203.0.113.9', 'http', 'shop.example']
  ]
  for (const [name, given, forwardedFor, proto, host] of told) {
    it(`tells in X-Forwarded-* what a trusted peer says in Forwarded alone: ${name}`, () => {
      const fields = append({ peer: '10.0.0.1', given })
      deepEqual([fields['x-forwarded-for'], fields['x-forwarded-proto'], fields['x-forwarded-host']], [forwardedFor === '' ? '10.0.0.1' : `${forwardedFor}, 10.0.0.1`, proto, host])
      ok(fields['forwarded']?.startsWith(given.forwarded as string))
    })
  }

  it('makes nothing of the Forwarded of a peer that is not trusted', () => {
    deepEqual(append({ given: { forwarded: 'for=1.1.1.1;proto=https;host=evil' } }), append({}))
  })

  it('extends what a trusted peer says', () => {
    deepEqual(append({ peer: '10.0.0.1', client: '1.2.3.4', given: forged, prefix: '/api' }), {
      'x-forwarded-for': '1.2.3.4, 10.0.0.1',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'bank.example',
      'x-forwarded-port': '443',
      'x-forwarded-prefix': '/admin/api',
      'x-real-ip': '1.2.3.4',
      'forwarded': 'for=1.2.3.4, for=10.0.0.1;host=shop.example;proto=http',
      'via': '1.0 fred, 1.1 breakwater'
    })
  })

  it('fills in what a trusted peer leaves out', () => {
    deepEqual(append({ peer: '10.0.0.1' }), { ...append({}), 'x-forwarded-for': '10.0.0.1', 'x-real-ip': '10.0.0.1', 'forwarded': 'for=10.0.0.1;host=shop.example;proto=http' })
  })

  const ports: [string, string][] = [['shop.example', '8080'], ['shop.example:81', '81'], ['[::1]', '8080'], ['[::1]:82', '82'], ['', '8080']]
  for (const [host, port] of ports) it(`takes the port of host "${host}" to be ${port}`, () => { equal(append({ host })['x-forwarded-port'], port) })

  const elements: [Request, string][] = [
    [{ host: '' }, 'for=203.0.113.9;proto=http'],
    [{ host: 'shop.example:81' }, 'for=203.0.113.9;host="shop.example:81";proto=http'],
    [{ peer: '2001:db8::9' }, 'for="[2001:db8::9]";host=shop.example;proto=http'],
    [{ peer: '' }, 'for=unknown;host=shop.example;proto=http'],
    [{ host: '[::1]' }, 'for=203.0.113.9;host="[::1]";proto=http'],
    [{ scheme: 'https' }, 'for=203.0.113.9;host=shop.example;proto=https']
  ]
  for (const [request, element] of elements) it(element, () => { equal(append(request)['forwarded'], element) })

  it('quotes so that a host can add no element of its own', () => {
    equal(append({ host: 'a";for="b' })['forwarded'], 'for=203.0.113.9;host="a\\";for=\\"b";proto=http')
  })

  it('follows the host from request to request on one connection', () => {
    const peer = new Peer('203.0.113.9', trust, 'http', 8080)
    for (const host of ['a', 'a', 'b:1', '', 'a', '', 'b:1']) {
      const fields: string[] = []
      peer.append(fields, nothing, host, '203.0.113.9', '')
      deepEqual(asRecord(fields), append({ host }))
    }
  })

  it('lets nothing of an untrusted peer through', () => {
    const text = fc.string({ minLength: 1 })
    const anything = fc.record({ forwardedFor: text, forwardedProto: text, forwardedHost: text, forwardedPort: text, forwardedPrefix: text, forwarded: text, via: text, requestId: text })
    fc.assert(fc.property(anything, (given) => { deepEqual(append({ given }), append({})) }))
  })

  it('appends, and leaves what is there alone', () => {
    const fields = ['accept', '*/*']
    new Peer('203.0.113.9', trust, 'http', 80).append(fields, nothing, 'shop', '203.0.113.9', '')
    deepEqual(fields.slice(0, 2), ['accept', '*/*'])
    ok(fields.length % 2 === 0)
  })
})

it('the client of an untrusted peer is the peer, of a trusted one whom its list names', () => {
  equal(new Peer('203.0.113.9', trust, 'http', 80).clientAddress('1.2.3.4'), '203.0.113.9')
  equal(new Peer('10.0.0.1', trust, 'http', 80).clientAddress('1.2.3.4'), '1.2.3.4')
  equal(new Peer('10.0.0.1', trust, 'http', 80).clientAddress(undefined), '10.0.0.1')
})

describe('the client that Forwarded tells of', () => {
  const clientOf = (forwarded: string | undefined, peer = '10.0.0.1') => new Peer(peer, trust, 'http', 80).clientAddressByForwarded(forwarded)
  const own = '10.0.0.1'

  const table: [name: string, forwarded: string | undefined, client: string][] = [
    ['no field', undefined, own],
    ['an empty field', '', own],
    ['one element', 'for=203.0.113.9', '203.0.113.9'],
    ['a name in capitals', 'FOR=203.0.113.9', '203.0.113.9'],
    ['among other parameters', 'by=10.0.0.2;for=203.0.113.9;host="a,b;for=6.6.6.6";proto=https', '203.0.113.9'],
    ['empty parameters', ';for=203.0.113.9;;proto=http;', '203.0.113.9'],
    ['spaces around the separators', ' \tfor=203.0.113.9 ; proto=http\t,\tfor=10.0.0.2 ', '203.0.113.9'],
    ['no spaces', 'for=203.0.113.9,for=10.0.0.2', '203.0.113.9'],
    ['the rightmost untrusted one wins', 'for=6.6.6.6, for=203.0.113.9;proto=http, for=10.0.0.2', '203.0.113.9'],
    ['all trusted: the leftmost', 'for=10.0.0.3, for=10.0.0.2', '10.0.0.3'],
    ['quoted IPv4', 'for="203.0.113.9"', '203.0.113.9'],
    ['IPv4 with a port', 'for="203.0.113.9:4711"', '203.0.113.9'],
    ['IPv4 with a hidden port', 'for="203.0.113.9:_p.1-x"', '203.0.113.9'],
    ['IPv6', 'for="[2001:db8::9]"', '2001:db8::9'],
    ['IPv6 with a port', 'for="[2001:db8::9]:4711"', '2001:db8::9'],
    ['IPv6 with a hidden port', 'for="[2001:db8::9]:_p"', '2001:db8::9'],
    ['IPv6 in another spelling', 'For="[2001:DB8:0::9]"', '2001:db8::9'],
    ['a trusted IPv6', 'for=203.0.113.9, for="[fd00::7]:80"', '203.0.113.9'],
    ['IPv4 mapped into IPv6', 'for=203.0.113.9, for="[::ffff:10.0.0.2]"', '203.0.113.9'],
    ['escapes in a quoted string', 'for="\\2\\03.0.113.9"', '203.0.113.9'],
    ['a quoted string that looks like elements', 'for=203.0.113.9;x=", for=6.6.6.6;y=\\""', '203.0.113.9'],

    ['unknown ends the walk', 'for=203.0.113.9, for=unknown, for=10.0.0.2', '10.0.0.2'],
    ['unknown alone', 'for=unknown', own],
    ['a hidden name ends the walk', 'for=203.0.113.9, for=_gazonk, for=10.0.0.2', '10.0.0.2'],
    ['a quoted hidden name with a port', 'for=203.0.113.9, for="_gazonk:80"', own],
    ['an element without for ends the walk', 'for=203.0.113.9, proto=https, for=10.0.0.2', '10.0.0.2'],
    ['an empty element ends the walk', 'for=203.0.113.9,,for=10.0.0.2', '10.0.0.2'],
    ['an empty element at the end', 'for=203.0.113.9,', own],
    ['an empty element at the beginning', ',for=10.0.0.2', '10.0.0.2'],
    ['by is not for', 'by=203.0.113.9', own],
    ['an empty node', 'for=""', own],
    ['IPv6 without brackets', 'for="2001:db8::9"', own],
    ['IPv4 in brackets', 'for="[203.0.113.9]"', own],
    ['IPv6 of a zone', 'for="[fe80::1%eth0]"', own],
    ['an open bracket', 'for="[::1"', own],
    ['text behind a bracket', 'for="[::1]x"', own],
    ['an empty port', 'for="203.0.113.9:"', own],
    ['a port that is too long', 'for="203.0.113.9:123456"', own],
    ['a list in one node', 'for="203.0.113.9, 10.0.0.2"', own],
    ['spaces in a node', 'for=" 203.0.113.9"', own],
    ['a short form', 'for=127.1', own],
    ['an octal form', 'for=0177.0.0.1', own],
    ['a number', 'for=2130706433', own],
    ['a part that is too large', 'for=203.0.113.256', own],

    ['malformed: no value', 'for=, for=203.0.113.9', own],
    ['malformed: no equals sign', 'for, for=203.0.113.9', own],
    ['malformed: a bare address', '203.0.113.9', own],
    ['malformed: a space before the equals sign', 'for =203.0.113.9', own],
    ['malformed: a space behind the equals sign', 'for= 203.0.113.9', own],
    ['malformed: a port without quotes', 'for=203.0.113.9:4711', own],
    ['malformed: IPv6 without quotes', 'for=[2001:db8::9]', own],
    ['malformed: an open quoted string', 'for=203.0.113.9;host="a', own],
    ['malformed: an escape at the end', 'for="203.0.113.9\\', own],
    ['malformed: text behind a quoted string', 'for="203.0.113.9"x', own],
    ['malformed: two for in one element', 'for=203.0.113.9;For=6.6.6.6', own],
    ['malformed: two for, the first one empty', 'for="";for=203.0.113.9', own],
    ['malformed on the left, where the client is the writer', 'for=", for=203.0.113.9', own],
    ['malformed on the right', 'for=203.0.113.9, for=10.0.0.2;proto', own],
    ['malformed: a space where a separator belongs', 'for=203.0.113.9 proto=http', own]
  ]
  for (const [name, forwarded, client] of table) it(name, () => { equal(clientOf(forwarded), client) })

  it('is the peer itself where that is not trusted', () => {
    equal(clientOf('for=1.2.3.4', '203.0.113.9'), '203.0.113.9')
    equal(clientOf('for=1.2.3.4', ''), '')
  })

  it('is at most 32 hops away', () => {
    const hops = (count: number) => `for=203.0.113.9${', for=10.0.0.2'.repeat(count)}`
    equal(clientOf(hops(31)), '203.0.113.9')
    equal(clientOf(hops(32)), '10.0.0.2')
  })

  it('is the same as an X-Forwarded-For of the same chain tells, and as the one that we write ourselves for it', () => {
    const address = fc.oneof(fc.constantFrom('10.0.0.2', '10.0.0.3', 'fd00::7', 'unknown', '_a'), fc.ipV4(), fc.ipV6().filter((text) => isIP(text) === 6))
    fc.assert(fc.property(fc.array(address, { minLength: 1, maxLength: 6 }), (chain) => {
      const peer = new Peer(own, trust, 'http', 80)
      const expected = peer.clientAddress(chain.join(', '))
      const quotedNodes = chain.map((text) => `for="${text.includes(':') ? `[${text}]` : text}";proto=http`).join(', ')
      equal(peer.clientAddressByForwarded(quotedNodes), expected, quotedNodes)
      const { forwarded } = append({ peer: own, given: { forwardedFor: chain.join(', ') } })
      equal(peer.clientAddressByForwarded(forwarded!.slice(0, forwarded!.lastIndexOf(', '))), expected, forwarded)
    }))
  })

  it('is never one that a client prepends or hides in its Host: these move nothing, or make the field malformed', () => {
    fc.assert(fc.property(fc.oneof(fc.string(), words), fc.oneof(fc.string(), words), (start, host) => {
      const written = ['203.0.113.9', '10.0.0.2'].map((peer) => append({ peer, host })['forwarded'])
      const client = clientOf([start, ...written].join(', '))
      ok(client === '203.0.113.9' || client === own, `${start} and ${host} -> ${client}`)
    }), { numRuns: 3000 })
    equal(clientOf(`a=", ${append({ host: ';for=6.6.6.6;b=' })['forwarded']}`), own)
  })

  it('is an address, whatever stands in the field', () => {
    fc.assert(fc.property(fc.oneof(words, fc.string({ unit: 'binary' })), (forwarded) => {
      const client = clientOf(forwarded)
      ok(isIP(client) !== 0, `${forwarded} -> ${client}`)
    }), { numRuns: 3000 })
  })

  it('is an address in a field of the greatest length too, one sign over and over', () => {
    const size = 65_536
    for (const unit of [' ', '\t', 'a', 'a=', ';', ',', '"', '\\', 'for=', 'for="', 'a="\\"', ' ;', ', ', '[', '1.', ':', 'a="" ']) {
      for (const start of ['', 'for="', 'for=1', 'for="[']) {
        for (const end of ['\u0000', '"', 'x"']) ok(isIP(clientOf(start + unit.repeat(size / unit.length) + end)) !== 0)
      }
    }
  })
})

it('Via of an answer is extended', () => {
  equal(extendVia(undefined), '1.1 breakwater')
  equal(extendVia(''), '1.1 breakwater')
  equal(extendVia('1.0 fred, 1.1 p.example'), '1.0 fred, 1.1 p.example, 1.1 breakwater')
})
