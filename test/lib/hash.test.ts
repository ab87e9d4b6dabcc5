import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { hashKey, hashText, mix32 } from '../../lib/hash.ts'

/** How many hashes fall into each of so many equal parts of their range. */
function spread (hashes: readonly number[], parts: number): number[] {
  const counts = new Array<number>(parts).fill(0)
  for (const hash of hashes) counts[Math.floor(hash / (2 ** 32 / parts))]!++
  return counts
}

const families: Array<[name: string, keys: string[]]> = [
  ['addresses', Array.from({ length: 16000 }, (_, i) => `10.0.${i >> 8}.${i & 255}`)],
  ['counters', Array.from({ length: 16000 }, (_, i) => `${i}`)],
  ['paths', Array.from({ length: 16000 }, (_, i) => `/users/${i}/orders?page=1`)],
  ['single characters', Array.from({ length: 16000 }, (_, i) => String.fromCharCode(i))],
  ['texts that differ in their middle', Array.from({ length: 16000 }, (_, i) => `${'a'.repeat(40)}${i}${'b'.repeat(40)}`)]
]

describe('the hash of a key', () => {
  /** The bytes are those of the text in UTF-16, little-endian; the hashes are the reference's. */
  const vectors: Array<[bytes: string, seed: number, hash: number]> = [
    ['', 0, 0],
    ['', 1, 0x514e28b7],
    ['', 0xffffffff, 0x81f16f39],
    ['ffffffff', 0, 0x76293b50],
    ['21436587', 0, 0xf55b516b],
    ['21436587', 0x5082edee, 0x2362f9de],
    ['2143', 0, 0xa0f7b07a],
    ['00000000', 0, 0x2362f9de],
    ['0000', 0, 0x30f4c306]
  ]
  for (const [bytes, seed, hash] of vectors) {
    it(`is that of MurmurHash3 for the bytes ${bytes === '' ? 'of nothing' : bytes} and the seed ${seed}`, () => {
      equal(hashText(Buffer.from(bytes, 'hex').toString('utf16le'), seed), hash)
    })
  }

  it('ends in a mix that no two values have in common', () => {
    equal(mix32(0), 0)
    equal(mix32(1), 0x514e28b7)
    equal(new Set(Array.from({ length: 100000 }, (_, i) => mix32(i * 42949))).size, 100000)
  })

  it('is the same on every machine', () => {
    deepEqual(['', 'a', 'ab', 'abc', 'ä', '\u{1f30a}', 'client-7'].map(hashKey), [0, 1867108634, 374890698, 1118836419, 1199446458, 2218066351, 2269775342])
  })

  it('is a whole number in 0 .. 2^32-1, the same each time, for any text', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => {
      const hash = hashKey(text)
      ok(Number.isInteger(hash) && hash >= 0 && hash < 2 ** 32)
      equal(hashKey(text), hash)
    }))
  })

  for (const [name, keys] of families) {
    it(`spreads ${name} evenly, without many that meet`, () => {
      const hashes = keys.map(hashKey)
      for (const parts of [3, 16, 100]) {
        const expected = keys.length / parts
        for (const count of spread(hashes, parts)) ok(Math.abs(count - expected) < 5 * Math.sqrt(expected), `${count} instead of ${expected}`)
      }
      ok(new Set(hashes).size > keys.length - 3)
    })
  }

  it('is another one with another seed', () => {
    const same = families[0]![1].filter((key) => hashText(key, 1) % 100 === hashText(key, 2) % 100)
    ok(same.length > 80 && same.length < 240, `${same.length}`)
  })

  it('sways about half of its bits with each bit of the text', () => {
    let changed = 0
    let tries = 0
    for (let i = 0; i < 500; i++) {
      const text = `key-${i}`
      for (let bit = 0; bit < 8; bit++) {
        const other = String.fromCharCode(text.charCodeAt(0) ^ (1 << bit)) + text.slice(1)
        for (let difference = hashKey(text) ^ hashKey(other); difference !== 0; difference &= difference - 1) changed++
        tries++
      }
    }
    ok(changed / tries > 15 && changed / tries < 17, `${changed / tries}`)
  })

  it('allocates nothing', () => {
    setFlagsFromString('--expose-gc')
    const gc = runInNewContext('gc') as () => void
    const keys = Array.from({ length: 64 }, (_, i) => `client-${i}-\u20ac`)
    const hashMany = (): number => {
      let sum = 0
      for (let i = 0; i < 50000; i++) sum = (sum + hashKey(keys[i & 63]!)) % 1000
      return sum
    }
    for (let i = 0; i < 10; i++) hashMany()
    let least = Infinity
    for (let round = 0; round < 10; round++) {
      gc()
      const before = process.memoryUsage().heapUsed
      hashMany()
      least = Math.min(least, Math.max(0, process.memoryUsage().heapUsed - before))
    }
    ok(least < 50000, `${least / 50000} bytes a hash`)
  })
})
