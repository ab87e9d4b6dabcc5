import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonicalAddress, isSameSet, maxMembers, memberId, toSet, type DiscoveredUpstream } from '../../../lib/discovery/members.ts'
import { seededRandom } from '../../../lib/random.ts'

const shuffled = <T>(list: readonly T[], seed: number): T[] => {
  const random = seededRandom(seed)
  return list.map((each) => [random(), each] as const).toSorted(([a], [b]) => a - b).map(([, each]) => each)
}

test('an address has one text', () => {
  for (const [text, canonical] of [
    ['10.0.0.1', '10.0.0.1'], ['::1', '::1'], ['FD00:0:0::1', 'fd00::1'], ['::ffff:10.0.0.1', '::ffff:a00:1'],
    ['10.1', null], ['010.0.0.1', null], ['fe80::1%eth0', null], ['[::1]', null], ['shop.test', null], ['', null], ['10.0.0.1:80', null]
  ] as const) assert.equal(canonicalAddress(text), canonical, text)
})

test('the id is made of the address, where there is one, and the port of the URL', () => {
  for (const [member, id] of [
    [{ url: 'http://Shop.test:8080/base' }, 'shop.test:8080'],
    [{ url: 'https://shop.test', address: '10.0.0.1' }, '10.0.0.1:443'],
    [{ url: 'http://shop.test:8080', address: 'FD00::0:1' }, '[fd00::1]:8080'],
    [{ url: 'http://[::2]:8080', address: '10.0.0.1' }, '10.0.0.1:8080'],
    [{ url: 'unix:/run/a.sock' }, '/run/a.sock']
  ] as const) assert.equal(memberId(member), id)
  for (const member of [{ url: 'ftp://x' }, { url: 'http://x', address: 'y' }, { url: 'http://x', address: '' }, { url: 'unix:/a', address: '10.0.0.1' }]) {
    assert.throws(() => memberId(member), TypeError, JSON.stringify(member))
  }
})

test('a set is in one order, by tier and id, without anybody twice', () => {
  const { members, ids, cut } = toSet([
    { url: 'http://b', priority: 1 }, { url: 'http://d', address: 'FD00::1' }, { url: 'http://c' }, { url: 'http://c:80', weight: 5 }, { url: 'http://a', priority: 1 }
  ])
  assert.deepEqual(ids, ['[fd00::1]:80', 'c:80', 'a:80', 'b:80'])
  assert.deepEqual(members[0], { url: 'http://d', address: 'fd00::1' })
  assert.deepEqual([members[1], cut], [{ url: 'http://c' }, 0])
})

test('too many are cut, the last tiers first', () => {
  const many: DiscoveredUpstream[] = Array.from({ length: 300 }, (_, index) => ({ url: `http://h${index}`, priority: index < 280 ? 1 : 0 }))
  const { members, ids, cut } = toSet(many)
  assert.deepEqual([ids.length, cut, members.filter(({ priority }) => priority === 0).length], [maxMembers, 44, 20])
  assert.deepEqual([toSet([]).ids, toSet(many, 1).ids], [[], ['h280:80']])
})

test('neither the order of members nor that of their options matters', () => {
  const member = fc.record({
    url: fc.integer({ min: 1, max: 40 }).map((port) => `http://shop.test:${port}`),
    address: fc.constantFrom('10.0.0.1', '10.0.0.2', 'fd00::1'),
    weight: fc.integer({ min: 0, max: 3 }),
    priority: fc.integer({ min: 0, max: 2 })
  }, { requiredKeys: ['url'] })
  fc.assert(fc.property(fc.uniqueArray(member, { selector: memberId }), fc.integer(), (members, seed) => {
    const turned = shuffled(members, seed).map((each) => Object.fromEntries(Object.entries(each).toReversed()) as unknown as DiscoveredUpstream)
    const [one, other] = [toSet(members), toSet(turned)]
    assert.deepEqual(one.ids, other.ids)
    assert.ok(isSameSet(one.members, other.members))
  }))
})

test('one option more, or another value, is another set', () => {
  const one: DiscoveredUpstream[] = [{ url: 'http://a', weight: 1, health: { path: '/up', rise: 1 } }]
  assert.ok(isSameSet(one, [{ health: { rise: 1, path: '/up' }, weight: 1, url: 'http://a' }]))
  for (const other of [[], [{ url: 'http://a' }], [{ ...one[0]!, weight: 2 }], [{ ...one[0]!, health: { path: '/up' } }], [one[0]!, { url: 'http://b' }]]) assert.ok(!isSameSet(one, other))
})
