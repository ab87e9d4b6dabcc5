import type { Http2Stream } from 'node:http2'
import { Readable } from 'node:stream'

const kEnded = Symbol('breakwater.remoteEnded')
interface WatchedStream extends Http2Stream { [kEnded]?: boolean, _readableState?: { ended: boolean } }

const { push } = Readable.prototype

/**
 * Notes when the other side ends a stream: Node ends its readable side for a reset without an error, too. What the other side has
 * itself ended ends while the stream is open. To be called before anything else happens to the stream.
 */
export function watchRemoteEnd (stream: WatchedStream): void {
  stream[kEnded] = stream.endAfterHeaders || (stream['_readableState']?.ended === true && !stream.closed)
  stream.push = pushWatched
}

/** True once the other side has ended the stream: what it sent is whole. */
export const hasRemoteEnded = (stream: WatchedStream): boolean => stream[kEnded] === true

function pushWatched (this: WatchedStream, chunk: unknown, encoding?: BufferEncoding): boolean {
  if (chunk === null && !this.closed && !this.destroyed) this[kEnded] = true
  return push.call(this, chunk, encoding)
}
