/** Frames of RFC 6455, good and bad: after the sections of Autobahn's testsuite, written anew. */

/** What one side sends behind the handshake, each piece in a write of its own. */
export type FrameCase = readonly [name: string, pieces: readonly Buffer[]]

interface Shape {
  fin?: boolean
  rsv?: number
  opcode?: number
  payload?: Buffer | string
  /** Tell the length in so many bytes, though fewer would do. */
  wide?: 2 | 8
}

const mask = Buffer.from([0x37, 0xfa, 0x21, 0x3d])

/** The bytes of a frame; masked as clients have to. */
export function frame ({ fin = true, rsv = 0, opcode = 1, payload = '', wide }: Shape, masked: boolean): Buffer {
  const data = Buffer.from(payload as string)
  const { length } = data
  const size = wide === 8 || length > 65535 ? 8 : wide === 2 || length > 125 ? 2 : 0
  const head = Buffer.alloc(2 + size)
  head[0] = (fin ? 0x80 : 0) | (rsv << 4) | opcode
  head[1] = (masked ? 0x80 : 0) | (size === 8 ? 127 : size === 2 ? 126 : length)
  if (size === 2) head.writeUInt16BE(length, 2)
  else if (size === 8) head.writeBigUInt64BE(BigInt(length), 2)
  if (!masked) return Buffer.concat([head, data])
  for (let i = 0; i < length; i++) data[i] = (data[i] as number) ^ (mask[i % 4] as number)
  return Buffer.concat([head, mask, data])
}

const closing = (code: number, reason: Buffer | string = ''): Shape => {
  const payload = Buffer.concat([Buffer.alloc(2), Buffer.from(reason as string)])
  payload.writeUInt16BE(code)
  return { opcode: 8, payload }
}

const good = 'κόσμε Grüße \u{1F600}'
const bytewise = [...Buffer.from(good)].map((byte) => Buffer.from([byte]))
const text = (size: number): string => '*'.repeat(size)

/** The shapes of each case; a frame that ends the connection follows them. */
const shapes: Record<string, readonly Shape[]> = {
  ...Object.fromEntries([0, 1, 125, 126, 127, 128, 65535, 65536, 1 << 20].flatMap((size) => [
    [`1, a text of ${size} bytes`, [{ payload: text(size) }]],
    [`1, binary of ${size} bytes`, [{ opcode: 2, payload: Buffer.alloc(size, 0xfe) }]]
  ])),
  '1, a length in more bytes than it needs': [{ payload: 'a', wide: 2 }, { payload: 'b', wide: 8 }],
  '2, a ping': [{ opcode: 9 }],
  '2, a ping of 125 bytes': [{ opcode: 9, payload: text(125) }],
  '2, a ping of 126 bytes': [{ opcode: 9, payload: text(126) }],
  '2, a ping of binary': [{ opcode: 9, payload: Buffer.from([0, 255, 254, 253]) }],
  '2, a pong that nobody asked for': [{ opcode: 10, payload: 'x' }, { opcode: 9, payload: 'y' }],
  '2, ten pings': Array.from({ length: 10 }, (_, i) => ({ opcode: 9, payload: String(i) })),
  ...Object.fromEntries([1, 2, 3, 4, 5, 6, 7].map((rsv) => [`3, reserved bits ${rsv}`, [{ payload: 'a' }, { rsv, payload: 'b' }, { opcode: 9 }]])),
  '3, reserved bits on a close': [{ rsv: 7, opcode: 8 }],
  ...Object.fromEntries([3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map((opcode) => [`4, opcode ${opcode}`, [{ payload: 'a' }, { opcode, payload: 'b' }, { opcode: 9 }]])),
  '5, a ping in fragments': [{ fin: false, opcode: 9, payload: 'a' }, { opcode: 0, payload: 'b' }],
  '5, a text in two fragments': [{ fin: false, payload: 'a' }, { opcode: 0, payload: 'b' }],
  '5, a ping between fragments': [{ fin: false, payload: 'a' }, { opcode: 9, payload: 'ping' }, { opcode: 0, payload: 'b' }],
  '5, a continuation of nothing': [{ opcode: 0, payload: 'a' }],
  '5, an unfinished continuation of nothing': [{ fin: false, opcode: 0, payload: 'a' }],
  '5, a text within a text': [{ fin: false, payload: 'a' }, { payload: 'b' }],
  '5, fifty fragments, some empty': [{ fin: false, payload: 'a' }, ...Array.from({ length: 48 }, (_, i) => ({ fin: false, opcode: 0, payload: text(i % 3) })), { opcode: 0, payload: 'z' }],
  '5, two messages in fragments': [{ fin: false, payload: 'a' }, { opcode: 0, payload: 'b' }, { fin: false, opcode: 2, payload: 'c' }, { opcode: 0, payload: 'd' }],
  '6, text of many bytes': [{ payload: good }],
  '6, each byte of it a fragment': bytewise.map((payload, i) => ({ fin: i === bytewise.length - 1, opcode: i === 0 ? 1 : 0, payload })),
  '6, an empty fragment before and behind': [{ fin: false, payload: '' }, { fin: false, opcode: 0, payload: good }, { opcode: 0, payload: '' }],
  ...Object.fromEntries([['ce', 'half a letter'], ['c080', 'an overlong NUL'], ['eda080', 'a surrogate'], ['f4908080', 'beyond Unicode'], ['80', 'a lone continuation'], ['fe', 'a byte that is never used'], ['cebae1bdb9cf83cebcceb5eda080656469746564', 'a good beginning']].flatMap(([hex, name]) => [
    [`6, bad UTF-8: ${name ?? ''}`, [{ payload: Buffer.from(hex ?? '', 'hex') }]],
    [`6, bad UTF-8 in a fragment: ${name ?? ''}`, [{ fin: false, payload: Buffer.from(hex ?? '', 'hex') }, { opcode: 0, payload: 'a' }]]
  ])),
  ...Object.fromEntries([1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999].map((code) => [`7, close ${code}`, [closing(code, 'why')]])),
  ...Object.fromEntries([0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535].map((code) => [`7, close ${code}, which is not allowed`, [closing(code)]])),
  '7, a close without code': [{ opcode: 8 }],
  '7, a close of one byte': [{ opcode: 8, payload: 'a' }],
  '7, a close with the longest reason': [closing(1000, text(123))],
  '7, a close with too long a reason': [closing(1000, text(124))],
  '7, a close with bad UTF-8': [closing(1000, Buffer.from('cebae1bdb9cf83cebcceb5eda080', 'hex'))],
  '7, two closes': [closing(1000), closing(1001)],
  '7, a text behind a close': [closing(1000), { payload: 'late' }],
  '7, a ping behind a close': [closing(1000), { opcode: 9 }],
  '7, a close within fragments': [{ fin: false, payload: 'a' }, closing(1000)]
}

/** How the bytes are cut: frame by frame, in one write, and in small pieces. */
const cuts: Record<string, (frames: Buffer[]) => Buffer[]> = {
  'frame by frame': (frames) => frames,
  'in one': (frames) => [Buffer.concat(frames)],
  'in pieces of 3': (frames) => (Buffer.concat(frames).toString('latin1').slice(0, 300).match(/[^]{1,3}/g) ?? []).map((piece) => Buffer.from(piece, 'latin1'))
}

/** Of one side; each ends with a close. */
export function frameCases (masked: boolean): FrameCase[] {
  return Object.entries(shapes).flatMap(([name, list]) => {
    const frames = [...list, closing(1000, 'end')].map((shape) => frame(shape, masked))
    const small = frames.reduce((sum, { length }) => sum + length, 0) <= 300
    return Object.entries(cuts).filter(([how]) => small || !how.startsWith('in pieces')).map(([how, cut]): FrameCase => [`${name} (${how})`, cut(frames)])
  })
}
