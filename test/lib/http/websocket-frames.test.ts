import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { closeFrame, FrameWalk, goingAway } from '../../../lib/http/websocket-frames.ts'

/** A frame with a payload of this length. */
function frame (length: number, masked: boolean, opcode = 2): Buffer {
  const mask = masked ? 0x80 : 0
  const head = length < 126 ? [mask | length] : length < 65536 ? [mask | 126, length >> 8, length & 255] : [mask | 127, 0, 0, 0, 0, length >>> 24, (length >> 16) & 255, (length >> 8) & 255, length & 255]
  return Buffer.concat([Buffer.from([0x80 | opcode, ...head]), Buffer.alloc((masked ? 4 : 0) + length, 0x88)])
}

const anyFrame = fc.record({ length: fc.oneof(fc.constantFrom(0, 1, 125, 126, 127, 65535, 65536), fc.nat(300)), masked: fc.boolean() })

describe('FrameWalk', () => {
  it('is between frames after each one, however the bytes were cut, and never within', () => {
    fc.assert(fc.property(fc.array(anyFrame, { minLength: 1, maxLength: 4 }), fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (frames, cuts) => {
      const walk = new FrameWalk()
      const bytes = Buffer.concat(frames.map(({ length, masked }) => frame(length, masked)))
      const ends = new Set<number>()
      let end = 0
      for (const { length, masked } of frames) ends.add(end += frame(length, masked).length)
      for (let at = 0, i = 0; at < bytes.length; i++) {
        const piece = bytes.subarray(at, at + (cuts[i % cuts.length] as number))
        equal(walk.pass(piece), piece.length)
        at += piece.length
        equal(walk.between, ends.has(at))
      }
    }), { numRuns: 50 })
  })

  it('stops behind the first frame that ends', () => {
    const walk = new FrameWalk()
    walk.pass(frame(10, false).subarray(0, 5))
    equal(walk.pass(Buffer.concat([frame(10, false).subarray(5), frame(3, false)]), true), 7)
    ok(walk.between)
    equal(walk.pass(frame(0, true), true), 6)
    equal(new FrameWalk().pass(frame(10, false).subarray(0, 5), true), 5)
  })

  it('knows a close frame', () => {
    const walk = new FrameWalk()
    walk.pass(frame(3, true))
    equal(walk.closing, false)
    walk.pass(frame(2, true, 8))
    equal(walk.closing, true)
  })

  it('never ends a frame of a length that nobody can send', () => {
    const walk = new FrameWalk()
    walk.pass(Buffer.of(0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3))
    equal(walk.between, false)
  })
})

it('a close frame has the code, masked where a client sends it', () => {
  deepEqual([...closeFrame(goingAway, null)], [0x88, 2, 0x03, 0xe9])
  deepEqual([...closeFrame(goingAway, Uint8Array.of(1, 2, 3, 4))], [0x88, 0x82, 1, 2, 3, 4, 0x02, 0xeb])
})
