import { constants } from 'node:http2'

const names = new Map(Object.entries(constants).filter(([name]) => /^NGHTTP2_(?:NO_ERROR|[A-Z0-9_]*_ERROR|REFUSED_STREAM|STREAM_CLOSED|CANCEL|ENHANCE_YOUR_CALM|INADEQUATE_SECURITY|SETTINGS_TIMEOUT|HTTP_1_1_REQUIRED|FLOW_CONTROL_ERROR)$/.test(name) && !name.startsWith('NGHTTP2_ERR_'))
  .map(([name, code]) => [code as number, name.slice('NGHTTP2_'.length)]))

/** The name of an error code of HTTP/2 (RFC 9113 section 7). */
export const codeName = (code: number): string => names.get(code) ?? `0x${code.toString(16)}`

/** The upstream ended the stream of an exchange, or the connection that it was on. */
export class StreamClosedError extends Error {
  readonly code: 'BREAKWATER_H2_RESET' | 'BREAKWATER_H2_INVALID'
  /** The upstream says that it has done nothing of it: it may be sent again, whatever it is. */
  readonly unprocessed: boolean
  /** The connection is being closed in order, and the exchange came too late for it. */
  readonly goingAway: boolean

  constructor (message: string, { invalid = false, unprocessed = false, goingAway = false } = {}) {
    super(message)
    this.name = 'StreamClosedError'
    this.code = invalid ? 'BREAKWATER_H2_INVALID' : 'BREAKWATER_H2_RESET'
    this.unprocessed = unprocessed
    this.goingAway = goingAway
  }
}

/** Nobody wants the answer any more. */
export class GivenUpError extends Error {
  readonly code = 'BREAKWATER_GIVEN_UP'
  constructor () { super('the exchange was given up') }
}

/** The exchange needs HTTP/2, and the upstream does not speak it. */
export class ProtocolError extends Error {
  readonly code = 'BREAKWATER_PROTOCOL'
  constructor () { super('the upstream speaks HTTP/1.1, and this request needs HTTP/2') }
}
