import type { Http2Stream } from 'node:http2'
import { addAbortSignal, Readable } from 'node:stream'

/**
 * Resets a stream with CANCEL, and nothing before it. `close(code)` would first end our side, and what was sent so far would look
 * whole to the other one; `destroy()` sends CANCEL for the one error that Node itself makes of an aborted signal.
 */
export function cancelStream (stream: Http2Stream): void {
  stream.destroy(aborted())
}

/** Resets a stream with INTERNAL_ERROR: what was sent of it is no whole message. */
export function breakStream (stream: Http2Stream): void {
  stream.destroy(new Error('broken off'))
}

let kind: (new () => Error) | null = null

function aborted (): Error {
  kind ??= kindOfAborted()
  return new kind()
}

function kindOfAborted (): new () => Error {
  const probe = new Readable({ read () {} })
  probe.on('error', () => {})
  addAbortSignal(AbortSignal.abort(), probe)
  return (probe.errored as Error).constructor as new () => Error
}
