/** The parts of the command line: arguments, times, columns, streams of events. */
import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { UsageError } from '../../../bin/cli/command.ts'
import { commands } from '../../../bin/cli/commands.ts'
import { durationOf, durationText } from '../../../bin/cli/duration.ts'
import { EventParser } from '../../../bin/cli/event-source.ts'
import { eventLine } from '../../../bin/cli/events.ts'
import { parseCommand } from '../../../bin/cli/parse.ts'
import { columns } from '../../../bin/cli/text.ts'
import { jsonLine, oneLine } from '../../../lib/one-line.ts'

const spec = {
  operands: [{ name: 'POOL' }, { name: 'STATE', choices: ['open', 'closed'] }],
  options: { ttl: { value: 'TIME', text: '' }, yes: { short: 'y', text: '' }, type: { value: 'TYPE', repeat: true, text: '' } }
}

test('options may stand anywhere, with = or without, and -- ends them', () => {
  const given = parseCommand(spec, ['--ttl=5m', 'shop', '-y', '--type', 'a', '--type=b', '--', 'open'])
  ok(given !== 'help')
  deepEqual([given.operands, given.text('ttl'), given.flag('yes'), given.list('type'), given.flag('nothing')], [['shop', 'open'], '5m', true, ['a', 'b'], false])
  equal(parseCommand(spec, ['x', '--help']), 'help')
  equal(parseCommand(spec, ['-h']), 'help')
})

test('arguments that are wrong are named, with what was probably meant', () => {
  const table: Array<[string[], string]> = [
    [[], 'POOL is missing'],
    [['shop'], 'STATE is missing'],
    [['shop', 'opne'], 'STATE must be open, closed, not "opne"; did you mean open?'],
    [['shop', 'open', 'x'], '"x" is one argument too many'],
    [['shop', 'open', '--tll', '5m'], 'unknown option --tll; did you mean --ttl?'],
    [['shop', 'open', '--constructor'], 'unknown option --constructor'],
    [['shop', 'open', '-z'], 'unknown option -z'],
    [['shop', 'open', '--ttl'], '--ttl wants a value: --ttl TIME'],
    [['shop', 'open', '--ttl', '--yes'], '--ttl wants a value: --ttl TIME'],
    [['shop', 'open', '--yes=1'], '--yes takes no value'],
    [['shop', 'open', '--ttl', '1s', '--ttl', '2s'], '--ttl stands twice']
  ]
  for (const [argv, message] of table) throws(() => parseCommand(spec, argv), new UsageError(message), argv.join(' '))
})

test('times are read as people write them, and written so that they can be read', () => {
  for (const [text, ms] of [['90s', 90_000], ['5m', 300_000], ['1h30m', 5_400_000], ['500ms', 500], ['1.5s', 1500], ['24d', 2_073_600_000]] as const) equal(durationOf(text, '--ttl'), ms)
  for (const text of ['', '5', 's', '-5s', '0s', '5 m', '5m!', '25d', '1e9s', 'NaNs']) throws(() => durationOf(text, '--ttl'), UsageError, text)
  for (const [ms, text] of [[-5, '0ms'], [0, '0ms'], [450, '450ms'], [2500, '2.5s'], [12_300, '12s'], [250_000, '4m 10s'], [300_000, '5m'], [11_100_000, '3h 5m'], [187_200_000, '2d 4h']] as const) equal(durationText(ms), text)
  fc.assert(fc.property(fc.integer({ min: 1, max: 2_000_000_000 }), (ms) => Math.abs(durationOf(durationText(ms).replaceAll(' ', ''), 'x') - ms) <= Math.max(60, ms * 0.05)))
})

test('columns are aligned by what is seen, and lines end without spaces', () => {
  const painted = columns([['a', 'b', 'c'], ['long', '', '']], (cell) => `<${cell}>`)
  deepEqual(painted, ['<a>     <b>  <c>', '<long>'])
})

test('what others wrote cannot move the cursor', () => {
  equal(oneLine('a\u001b[2Jb\r\nc\u2028'), 'a\\u001b[2Jb\\u000d\\u000ac\\u2028')
  equal(oneLine('a\u202eb\u2066c\u200bd\ufeffe\ud800f\u{e0041}g \u{1f600} \u05d0'), 'a\\u202eb\\u2066c\\u200bd\\ufeffe\\ud800f\\udb40\\udc41g \u{1f600} \u05d0')
  const value = { reason: '\u009b31m\u202e\u{e0041}\u007f\n', list: ['\u2028'] }
  equal(/[\p{Cc}\p{Cf}\p{Zl}]/u.test(jsonLine(value)), false)
  deepEqual(JSON.parse(jsonLine(value)), value)
  equal(eventLine({ seq: 1, at: 'T', type: 't', ms: 16022.367812, small: 0.00012345, list: [0.29411764705882354, 5], text: '16022.367812' }), '1 T t ms=16022.368 small=0.000123 list=[0.294,5] text=16022.367812')
  equal(eventLine({ seq: 1, at: 'T', type: 'admin_write', reason: 'disk\nfull\u009b', target: 'shop/[::1]:9', ttlMs: 5 }), '1 T admin_write reason="disk\\nfull\\u009b" target=shop/[::1]:9 ttlMs=5')
})

test('a stream of events is the same, however it is cut into pieces', () => {
  const stream = 'event: stream\ndata: {"run":"T"}\n\n: breakwater events\n\nid: 1\ndata: {"a":1}\n\n:\n\nid: 2\r\ndata: x\r\ndata:y\r\n\r\n: events 3 to 5 are no longer kept\n\ndata: unfinished'
  const whole = [{ comment: 'breakwater events' }, { data: '{"a":1}' }, { data: 'x\ny' }, { comment: 'events 3 to 5 are no longer kept' }]
  fc.assert(fc.property(fc.array(fc.integer({ min: 1, max: stream.length - 1 })), (cuts) => {
    const parser = new EventParser()
    const at = [0, ...cuts.toSorted((a, b) => a - b), stream.length]
    deepEqual(at.slice(1).flatMap((end, i) => parser.push(stream.slice(at[i], end))), whole)
  }))
})

test('every command says what it does, and its options are spelt alike everywhere', () => {
  const texts = new Map<string, string>()
  for (const { name, summary, options } of commands) {
    ok(/^[a-z]/.test(summary) && !summary.endsWith('.'), name)
    for (const [option, { text, short }] of Object.entries(options)) {
      ok(text.length > 0 && !text.endsWith('.'), `${name} --${option}`)
      ok(short !== 'h')
      if (!['admin', 'token-file', 'json', 'reason', 'ttl'].includes(option) || name === 'check') continue
      equal(texts.get(option) ?? text, text, `${name} --${option}`)
      texts.set(option, text)
    }
  }
})
