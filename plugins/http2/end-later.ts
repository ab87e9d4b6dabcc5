import type { Http2Session } from 'node:http2'

/**
 * Makes a session close and be destroyed only when what has come is read. Node does both as soon as it reads a GOAWAY, in the midst of
 * reading: nghttp2 then frees what it still reads, or aborts the process at a frame behind it that is too long.
 * @param onEnding called at once when it will end
 */
export function endLater (session: Http2Session, onEnding: () => void = () => {}): void {
  const close = session.close.bind(session)
  const destroy = session.destroy.bind(session)
  session.close = (callback) => {
    onEnding()
    setImmediate(close, callback)
  }
  session.destroy = (error, code) => {
    onEnding()
    setImmediate(destroy, error, code)
  }
}
