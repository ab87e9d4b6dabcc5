/**
 * Mixes 32 bits so that each bit of the value sways each bit of the result; no two values have the same result.
 * Source: the finaliser of MurmurHash3 (Austin Appleby, public domain).
 * @returns a whole number in 0 .. 2^32-1
 */
export function mix32 (value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}

function scrambled (block: number): number {
  const spread = Math.imul(block, 0xcc9e2d51)
  return Math.imul((spread << 15) | (spread >>> 17), 0x1b873593)
}

/**
 * Hash of a text: MurmurHash3_x86_32 (Austin Appleby, public domain) of its UTF-16 code units, as little-endian bytes. Nothing is
 * allocated. The same text has the same hash on every machine and in every process, so it is no defence against somebody who
 * chooses texts that collide.
 * @param seed another one gives an independent hash
 * @returns a whole number in 0 .. 2^32-1
 */
export function hashText (text: string, seed: number): number {
  const { length } = text
  const paired = length - length % 2
  let hash = seed | 0
  for (let i = 0; i < paired; i += 2) {
    hash ^= scrambled(text.charCodeAt(i) | (text.charCodeAt(i + 1) << 16))
    hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64) | 0
  }
  if (paired < length) hash ^= scrambled(text.charCodeAt(paired))
  return mix32(hash ^ (length << 1))
}

/** Hash of a request's key, as balancers take it: a whole number in 0 .. 2^32-1. */
export function hashKey (text: string): number {
  return hashText(text, 0)
}
