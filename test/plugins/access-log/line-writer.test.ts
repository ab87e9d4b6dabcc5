import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import pino, { type LoggerOptions } from 'pino'
import type { AccessLine } from '../../../lib/access-line.ts'
import { lineWriter } from '../../../plugins/access-log/line-writer.ts'

const line: AccessLine = {
  request_id: 'a-1', method: 'GET', path: '/"quoted"\\\u0001\u2028é\ud800', status: 200, bytes: 12, duration_ms: 1.234, client_ip: '::1',
  route: '/*', pool: 'shop', upstream: null, attempts: 1, reason: null
}

function sink (): { stream: Writable, lines: string[] } {
  const lines: string[] = []
  return { lines, stream: new Writable({ decodeStrings: false, write (chunk, _encoding, done) { lines.push(String(chunk)); done() } }) }
}

const plainTime = (): string => ',"time":1'

const loggers: Record<string, LoggerOptions> = {
  'the default': {},
  'bindings of its own': { base: { service: 'edge' } },
  'no bindings': { base: null },
  'level labels': { formatters: { level: (label) => ({ level: label }) } },
  'a mixin': { mixin: () => ({ mixed: true }) },
  'a log formatter': { formatters: { log: (object) => ({ ...object, formatted: true }) } },
  'redaction': { redact: ['client_ip'] },
  'redaction of everything': { redact: ['*'] },
  'a serializer of a field': { serializers: { path: () => 'serialized' } },
  'another message key': { messageKey: 'message' },
  'a nested key': { nestedKey: 'payload' },
  'a prefix': { msgPrefix: '[edge] ' },
  'a hook': { hooks: { logMethod (args, method) { method.apply(this, args) } } },
  'a stream hook': { hooks: { streamWrite: (text) => text.replace('GET', 'PUT') } },
  'a level that is too high': { level: 'warn' }
}

for (const [name, options] of Object.entries(loggers)) {
  test(`an access line of a logger with ${name} is the one that pino would write`, () => {
    const [ours, pinos] = [sink(), sink()]
    const timed = { timestamp: plainTime, ...options }
    lineWriter(pino(timed, ours.stream))(line)
    pino(timed, pinos.stream).info(line, 'access')
    assert.deepEqual(ours.lines, pinos.lines)
    assert.equal(ours.lines.length, options.level === 'warn' ? 0 : 1)
  })
}

test('a child logger keeps its bindings', () => {
  const [ours, pinos] = [sink(), sink()]
  lineWriter(pino({ timestamp: plainTime }, ours.stream).child({ app: 'x' }))(line)
  pino({ timestamp: plainTime }, pinos.stream).child({ app: 'x' }).info(line, 'access')
  assert.deepEqual(ours.lines, pinos.lines)
})

test('the level is looked at for each line', () => {
  const { stream, lines } = sink()
  const logger = pino({}, stream)
  const write = lineWriter(logger)
  logger.level = 'error'
  write(line)
  logger.level = 'info'
  write(line)
  assert.equal(lines.length, 1)
})

test('a logger that is no pino is called', () => {
  const calls: unknown[][] = []
  const logger = { info: (...args: unknown[]) => { calls.push(args) } }
  lineWriter(logger as never)(line)
  assert.deepEqual(calls, [[line, 'access']])
})
