import { ConnectionEnded } from './byte-reader.ts'
import type { ByteReader } from './byte-reader.ts'

/** Fields as they stood on the wire: their order, spelling and repetition kept. */
export type FieldList = Array<[name: string, value: string]>

/** A message's start line and fields. Text is latin1, so that every byte survives. */
export interface RawHead {
  startLine: string
  headers: FieldList
  /** The head's bytes, its blank line included. */
  text: string
}

export interface RawBody {
  /** De-chunked. */
  body: Buffer
  trailers: FieldList
  /** Whether the message's framing says that it is whole. */
  complete: boolean
}

/** The values of a field, in order; names are compared without regard to case. */
export function valuesOf (headers: FieldList, name: string): string[] {
  return headers.filter(([key]) => key.toLowerCase() === name.toLowerCase()).map(([, value]) => value)
}

/** The field's values joined with a comma, or undefined when it is absent. */
export function valueOf (headers: FieldList, name: string): string | undefined {
  const values = valuesOf(headers, name)
  return values.length === 0 ? undefined : values.join(', ')
}

function parseFields (lines: string[]): FieldList {
  return lines.filter(line => line !== '').map(line => {
    const colon = line.indexOf(':')
    return colon < 0 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).trim()]
  })
}

/** @throws ConnectionEnded when the connection ends before the blank line */
export async function readHead (reader: ByteReader): Promise<RawHead> {
  const text = (await reader.until('\r\n\r\n')).toString('latin1')
  const [startLine = '', ...lines] = text.split('\r\n')
  return { startLine, headers: parseFields(lines), text }
}

/**
 * Reads the body that these fields frame (RFC 9112, section 6): chunked, counted, or up to the end of the connection where
 * `untilEnd` allows that. Never throws for a body that is cut or framed wrongly: it is then not `complete`.
 */
export async function readBody (reader: ByteReader, headers: FieldList, untilEnd: boolean): Promise<RawBody> {
  const pieces: Buffer[] = []
  let trailers: FieldList = []
  const done = (complete: boolean): RawBody => ({ body: Buffer.concat(pieces), trailers, complete })
  const take = async (count: number): Promise<boolean> => {
    for (let missing = count; missing > 0;) {
      const piece = await reader.some(missing)
      if (piece.length === 0) return false
      pieces.push(piece)
      missing -= piece.length
    }
    return true
  }
  try {
    if (/(^|,)\s*chunked\s*$/i.test(valueOf(headers, 'transfer-encoding') ?? '')) {
      for (;;) {
        const size = /^([0-9a-f]+)[ \t]*(;.*)?\r\n$/i.exec((await reader.until('\r\n')).toString('latin1'))?.[1]
        if (size === undefined) return done(false)
        if (Number.parseInt(size, 16) === 0) break
        if (!await take(Number.parseInt(size, 16))) return done(false)
        if ((await reader.exactly(2)).toString('latin1') !== '\r\n') return done(false)
      }
      const lines: string[] = []
      for (let line = ''; line !== '\r\n';) {
        line = (await reader.until('\r\n')).toString('latin1')
        lines.push(line.slice(0, -2))
      }
      trailers = parseFields(lines)
      return done(true)
    }
    const lengths = new Set(valuesOf(headers, 'content-length'))
    if (lengths.size > 0) {
      const [length = ''] = lengths
      return done(lengths.size === 1 && /^[0-9]+$/.test(length) && await take(Number(length)))
    }
    if (!untilEnd) return done(true)
    await take(Infinity)
    return done(reader.end === 'fin')
  } catch (error) {
    if (error instanceof ConnectionEnded) return done(false)
    throw error
  }
}

/** One chunk of a chunked body. */
export function chunk (data: string | Buffer, extension = ''): Buffer {
  const bytes = toBytes(data)
  return Buffer.concat([toBytes(`${bytes.length.toString(16)}${extension}\r\n`), bytes, toBytes('\r\n')])
}

/** The end of a chunked body, with its trailers. */
export function lastChunk (trailers: FieldList = []): Buffer {
  return toBytes(`0\r\n${trailers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`)
}

/** Text to bytes one to one (latin1). */
export function toBytes (data: string | Buffer): Buffer {
  return typeof data === 'string' ? Buffer.from(data, 'latin1') : data
}
