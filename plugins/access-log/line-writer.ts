import type { FastifyBaseLogger } from 'fastify'
import pino from 'pino'
import type { AccessLine } from '../../lib/access-line.ts'

const { symbols } = pino
// Exported like the others, and missing in pino's types.
const msgPrefixSym = (symbols as unknown as { msgPrefixSym: symbol }).msgPrefixSym
const info = 30
const ownFields = new Set(['request_id', 'method', 'path', 'status', 'bytes', 'duration_ms', 'client_ip', 'route', 'pool', 'upstream', 'attempts', 'reason'])

/** The parts of a line that are the logger's own. */
interface PlainParts {
  stream: { write (line: string): unknown }
  level: string
  time: () => string
  bindings: string
  end: string
}

/** Where access lines go. */
export interface LineWriter {
  write (line: AccessLine): void
  /** Hands over what waits, and lets go of the process. */
  close (): void
}

/**
 * Writes access lines as `logger.info(line, 'access')` would, byte for byte, for less: an access line is a fixed set of plain
 * fields, and pino looks at each as if it could be anything. Only a logger on which nothing could change a line is written to in
 * this way; every other one is called as usual.
 */
export function lineWriter (logger: FastifyBaseLogger): LineWriter {
  const plain = plainParts(logger as unknown as Record<symbol, unknown>)
  if (plain === null) return { write: (line) => { logger.info(line, 'access') }, close () {} }
  const { stream, level, time, bindings } = plain
  const end = `,"msg":"access"${plain.end}`
  const { isLevelEnabled } = logger as unknown as { isLevelEnabled (level: string): boolean }
  const { write, close } = isBuffered(stream) ? gathered(stream) : { write: (text: string) => { stream.write(text) }, close () {} }
  return {
    write (line) {
      if (isLevelEnabled.call(logger, 'info')) write(`${level}${time()}${bindings},${JSON.stringify(line).slice(1, -1)}${end}`)
    },
    close
  }
}

/** pino's own destination, which gathers lines and writes them later. */
function isBuffered (stream: PlainParts['stream']): boolean {
  return typeof (stream as { flushSync?: unknown }).flushSync === 'function'
}

/**
 * Gathers the lines of one turn of the event loop. For each write pino's destination measures all that it has gathered so far;
 * a line at a time, that would be the dearest part of logging. What waits is handed over before the process exits, before the
 * destination's own flush.
 */
function gathered (stream: PlainParts['stream']): { write (text: string): void, close (): void } {
  let waiting = ''
  let closed = false
  const handOver = (): void => {
    if (waiting === '') return
    const text = waiting
    waiting = ''
    stream.write(text)
  }
  process.prependListener('exit', handOver)
  return {
    write (text) {
      if (closed) {
        stream.write(text)
        return
      }
      if (waiting === '') setImmediate(handOver)
      waiting += text
    },
    close () {
      closed = true
      handOver()
      process.removeListener('exit', handOver)
    }
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
