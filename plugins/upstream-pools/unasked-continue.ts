import type { Socket } from 'node:net'

/** The part of undici's parser that is told of a head; `status` 100 makes it end the connection. */
interface Parser {
  onHeadersComplete (status: number, upgrade: boolean, keepAlive: boolean): number
}

/** One for each class of parsers, so that all connections share it. */
const accepting = new WeakMap<object, Parser['onHeadersComplete']>()

/**
 * Makes an answer of `100 Continue` on a connection one like any other 1xx, which its client has to be able to ignore although it never
 * asked (RFC 9110 section 15.2); undici takes it for an invalid answer. It is told of 102 in its place, on this connection alone. Where
 * undici keeps no such parser, as for HTTP/2, nothing is done. To be called once undici uses the socket.
 */
export function acceptContinue (socket: Socket): void {
  const parser = parserOf(socket)
  if (parser === null || Object.hasOwn(parser, 'onHeadersComplete')) return
  const { onHeadersComplete } = parser
  const known = accepting.get(onHeadersComplete)
  if (known === undefined) accepting.set(onHeadersComplete, parser.onHeadersComplete = tellsProcessing(onHeadersComplete))
  else parser.onHeadersComplete = known
}

function tellsProcessing (original: Parser['onHeadersComplete']): Parser['onHeadersComplete'] {
  return function (this: Parser, status, upgrade, keepAlive) {
    return original.call(this, status === 100 ? 102 : status, upgrade, keepAlive)
  }
}

function parserOf (socket: Socket): Parser | null {
  const symbol = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'parser')
  const parser = symbol === undefined ? undefined : (socket as unknown as Record<symbol, unknown>)[symbol]
  const isParser = typeof parser === 'object' && parser !== null && typeof (parser as Partial<Parser>).onHeadersComplete === 'function'
  return isParser ? parser as Parser : null
}
