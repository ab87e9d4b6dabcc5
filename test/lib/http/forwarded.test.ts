import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { extendVia, Peer } from '../../../lib/http/forwarded.ts'
import type { GivenFields } from '../../../lib/http/request-head.ts'
import { compileTrust } from '../../../lib/http/trust.ts'

const nothing: GivenFields = { forwardedFor: '', forwardedProto: '', forwardedHost: '', forwardedPort: '', forwardedPrefix: '', forwarded: '', via: '', requestId: '' }
const trust = compileTrust(['10.0.0.0/8', 'fd00::/8'])

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

it('Via of an answer is extended', () => {
  equal(extendVia(undefined), '1.1 breakwater')
  equal(extendVia(''), '1.1 breakwater')
  equal(extendVia('1.0 fred, 1.1 p.example'), '1.0 fred, 1.1 p.example, 1.1 breakwater')
})
