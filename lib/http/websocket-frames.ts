/** The close code of an endpoint that goes away (RFC 6455 section 7.4.1). */
export const goingAway = 1001

/**
 * Follows the frames (RFC 6455 section 5.2) of one direction of a WebSocket without looking into them, to know where one ends: only
 * there may a frame of ours be put in. Extensions change what is in a frame, not where it ends.
 */
export class FrameWalk {
  /** Bytes of the present frame that are still to come, behind what tells its length. */
  #left = 0
  /** Bytes of the present head so far; 0 once the length is known. */
  #seen = 0
  /** Bytes of the head up to the end of the length. */
  #need = 0
  #mask = 0
  #length = 0
  /** A close frame has begun: its sender has nothing more to say. */
  closing = false

  /** True where a frame has ended and none has begun. */
  get between (): boolean { return this.#left === 0 && this.#seen === 0 }

  /**
   * Goes on by these bytes.
   * @param stop not beyond the end of the first frame that ends in them
   * @returns how many of them it went
   */
  pass (bytes: Uint8Array, stop = false): number {
    const { length } = bytes
    let at = 0
    while (at < length) {
      if (this.#left > 0) {
        const taken = Math.min(this.#left, length - at)
        this.#left -= taken
        at += taken
      } else {
        this.#head(bytes[at++] as number)
      }
      if (stop && this.between) break
    }
    return at
  }

  #head (byte: number): void {
    this.#seen++
    if (this.#seen === 1) {
      if ((byte & 0x0f) === 8) this.closing = true
      return
    }
    if (this.#seen === 2) {
      this.#mask = byte >= 0x80 ? 4 : 0
      const length = byte & 0x7f
      this.#need = length < 126 ? 2 : length === 126 ? 4 : 10
      this.#length = length < 126 ? length : 0
    } else {
      this.#length = this.#length * 256 + byte
    }
    if (this.#seen < this.#need) return
    this.#left = this.#length + this.#mask
    this.#seen = 0
  }
}

/**
 * A close frame without a reason text.
 * @param mask four bytes, as a client has to use them; null: a server's, which has none
 */
export function closeFrame (code: number, mask: Uint8Array | null): Uint8Array {
  const code1 = code >> 8
  const code2 = code & 0xff
  if (mask === null) return Uint8Array.of(0x88, 2, code1, code2)
  const [a = 0, b = 0, c = 0, d = 0] = mask
  return Uint8Array.of(0x88, 0x82, a, b, c, d, code1 ^ a, code2 ^ b)
}
