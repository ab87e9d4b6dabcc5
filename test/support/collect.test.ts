import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lines } from './collect.ts'
import { spawnNode } from './process.ts'
import { until, within } from './wait.ts'

test('log lines are parsed wherever the writes are split', async () => {
  const text = '{"msg":"a","n":1}\n{"msg":"é"}\nplain text\n{"msg":"a","n":2}'
  for (let at = 1; at < Buffer.byteLength(text); at++) {
    const log = lines()
    log.write(Buffer.from(text).subarray(0, at))
    log.end(Buffer.from(text).subarray(at))
    await until(() => log.writableFinished)
    assert.deepEqual(log.lines, [{ msg: 'a', n: 1 }, { msg: 'é' }, { text: 'plain text' }, { msg: 'a', n: 2 }])
    assert.deepEqual(log.find('a'), { msg: 'a', n: 1 })
    assert.equal(log.all(line => line['n'] !== undefined).length, 2)
  }
})

test('a line is awaited, and missed with the last lines told', async () => {
  const log = lines()
  const found = log.waitFor('late')
  log.write('{"msg":"late"}\n')
  assert.deepEqual(await found, { msg: 'late' })
  await assert.rejects(log.waitFor('never', { timeoutMs: 20 }), /not within 20 ms: a log line: never.*"late"/)
})

test('waiting is bounded and says for what', async () => {
  let calls = 0
  assert.equal(await until(async () => ++calls === 3 && 'done'), 'done')
  await assert.rejects(until(() => 0, { timeoutMs: 10, what: 'a miracle' }), /not within 10 ms: a miracle \(last: 0\)/)
  await assert.rejects(within(new Promise(() => {}), { timeoutMs: 10, what: 'an answer' }), /not within 10 ms: an answer/)
  assert.equal(await within(Promise.resolve(4)), 4)
})

test('a child process is read, told apart by its exit, and killed when left running', async t => {
  const ended = spawnNode(t, ['-e', 'console.log(JSON.stringify({ msg: "up", value: process.env.VALUE })); console.error("oops"); process.exitCode = 3'], { env: { VALUE: 'v' } })
  assert.equal((await ended.waitForLine('up'))['value'], 'v')
  assert.deepEqual(await ended.exit, { code: 3, signal: null })
  assert.deepEqual(ended.errors.lines, [{ text: 'oops' }])
  await assert.rejects(ended.waitForLine('never'), /ended without the line never: .*oops/)

  let left = spawnNode(t, ['-e', 'console.log("{}"); setInterval(() => {}, 1000)'])
  await left.waitForLine(() => true)
  left.kill()
  assert.deepEqual(await left.exit, { code: null, signal: 'SIGTERM' })

  await t.test('inner', async inner => {
    left = spawnNode(inner, ['-e', 'console.log("{}"); setInterval(() => {}, 1000)'])
    await left.waitForLine(() => true)
  })
  assert.deepEqual(await left.exit, { code: null, signal: 'SIGKILL' })
})
