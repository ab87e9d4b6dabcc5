import type { FastifyBaseLogger } from 'fastify'
import pino from 'pino'
import type { AccessLine } from '../../lib/access-line.ts'

const { symbols } = pino
// Exported like the others, and missing in pino's types.
const msgPrefixSym = (symbols as unknown as { msgPrefixSym: symbol }).msgPrefixSym
const info = 30
const ownFields = new Set(['request_id', 'method', 'path', 'status', 'bytes', 'duration_ms', 'client_ip', 'route', 'pool', 'upstream', 'attempts', 'reason', 'bytes_in'])

/** The parts of a line that are the logger's own. */
interface PlainParts {
  stream: { write (line: string): unknown }
  level: string
  time: () => string
  bindings: string
  end: string
}

/**
 * Writes access lines as `logger.info(line, 'access')` would, byte for byte, for less: an access line is a fixed set of plain
 * fields, and pino looks at each as if it could be anything. Only a logger on which nothing could change a line is written to in
 * this way; every other one is called as usual.
 */
export function lineWriter (logger: FastifyBaseLogger): (line: AccessLine) => void {
  const plain = plainParts(logger as unknown as Record<symbol, unknown>)
  if (plain === null) return (line) => { logger.info(line, 'access') }
  const { stream, level, time, bindings } = plain
  const end = `,"msg":"access"${plain.end}`
  const { isLevelEnabled } = logger as unknown as { isLevelEnabled (level: string): boolean }
  return (line) => {
    if (isLevelEnabled.call(logger, 'info')) stream.write(`${level}${time()}${bindings},${JSON.stringify(line).slice(1, -1)}${end}`)
  }
}

/** Reads what pino's exported symbols give access to; null where the logger is no pino, or one that changes its lines. */
function plainParts (logger: Record<symbol, unknown>): PlainParts | null {
  const stream = logger[symbols.streamSym] as PlainParts['stream'] | undefined
  const level = (logger[symbols.lsCacheSym] as Record<number, string> | undefined)?.[info]
  const time = logger[symbols.timeSym] as PlainParts['time'] | undefined
  const bindings = logger[symbols.chindingsSym] as string | undefined
  const end = logger[symbols.endSym] as string | undefined
  if (stream === undefined || level === undefined || time === undefined || bindings === undefined || end === undefined) return null
  return changesLines(logger, stream) ? null : { stream, level, time, bindings, end }
}

function changesLines (logger: Record<symbol, unknown>, stream: object): boolean {
  const record = (symbol: symbol): Record<string | symbol, unknown> => (logger[symbol] ?? {}) as Record<string | symbol, unknown>
  const stringifiers = record(symbols.stringifiersSym)
  return logger[symbols.mixinSym] !== undefined ||
    (logger[symbols.nestedKeySym] ?? '') !== '' ||
    (logger[msgPrefixSym] ?? '') !== '' ||
    logger[symbols.messageKeySym] !== 'msg' ||
    record(symbols.formattersSym)['log'] !== undefined ||
    Object.values(record(symbols.hooksSym)).some((hook) => hook !== undefined) ||
    Reflect.ownKeys(stringifiers).length > 0 ||
    Object.keys(record(symbols.serializersSym)).some((field) => ownFields.has(field)) ||
    (stream as Record<symbol, unknown>)[symbols.needsMetadataGsym] === true
}
