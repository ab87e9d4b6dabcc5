import { Writable } from 'node:stream'
import { until } from './wait.ts'
import type { UntilOptions } from './wait.ts'

/** One line of a log. A line that is not a JSON object becomes `{ text }`. */
export type LogLine = Record<string, unknown>

/** A message to look for, or a test of the whole line. */
export type LineMatch = string | ((line: LogLine) => boolean)

/** A stream that parses JSON lines, as pino writes them, and keeps them. */
export class LineCollector extends Writable {
  readonly lines: LogLine[] = []
  #rest = ''
  readonly #decoder = new TextDecoder()

  override _write (bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#add(this.#decoder.decode(bytes, { stream: true }))
    done()
  }

  override _final (done: () => void): void {
    this.#add(this.#decoder.decode())
    if (this.#rest !== '') this.#add('\n')
    done()
  }

  /** The first line with this message. */
  find (match: LineMatch): LogLine | undefined {
    return this.lines.find(toTest(match))
  }

  /** Every line with this message, in order. */
  all (match: LineMatch): LogLine[] {
    return this.lines.filter(toTest(match))
  }

  /** The first such line, present or to come. @throws after `timeoutMs`, telling the last lines */
  async waitFor (match: LineMatch, options: UntilOptions = {}): Promise<LogLine> {
    const { what = typeof match === 'string' ? match : String(match), ...bounds } = options
    try {
      return await until(() => this.find(match), { ...bounds, what: `a log line: ${what}` })
    } catch (error) {
      throw new Error(`${(error as Error).message}; last lines: ${JSON.stringify(this.lines.slice(-10))}`, { cause: error })
    }
  }

  #add (text: string): void {
    const parts = (this.#rest + text).split('\n')
    this.#rest = parts.pop() ?? ''
    for (const part of parts) if (part !== '') this.lines.push(parseLine(part))
  }
}

/** A fresh collector, to be given to pino as its stream. */
export function lines (): LineCollector {
  return new LineCollector()
}

function toTest (match: LineMatch): (line: LogLine) => boolean {
  return typeof match === 'string' ? line => line['msg'] === match : match
}

function parseLine (text: string): LogLine {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as LogLine
  } catch {
    // Not JSON: kept as text below.
  }
  return { text }
}
