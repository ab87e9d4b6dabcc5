import { constants, type ServerHttp2Session } from 'node:http2'
import { socketOf } from './client-request.ts'

/**
 * Ends a client's session and its connection now, whatever state they are in. `destroy` alone waits, without a limit, for the client to
 * read what is being written, and where the session was closed before, to end its own side.
 */
export function cutSession (session: ServerHttp2Session): void {
  const socket = socketOf(session)
  // Without a code a stream is reset as one that ended well, and its client takes the part that it has for the whole. (With undefined
  // in the place of null, Node takes no notice of the code.)
  session.destroy(null as never, constants.NGHTTP2_CANCEL)
  // Behind the GOAWAY and the resets, where those can be written at all.
  setImmediate(() => { socket.destroy() })
}
