import { equal, match, ok } from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { LogDestination } from '../../../plugins/access-log/destination.ts'
import { until } from '../../support/wait.ts'

const module = join(dirname(fileURLToPath(import.meta.url)), '../../../plugins/access-log/destination.js')

function file (t: TestContext): { path: string, fd: number, text: () => string } {
  const folder = mkdtempSync(join(tmpdir(), 'breakwater-log-'))
  const path = join(folder, 'log')
  const fd = openSync(path, 'a')
  t.after(() => {
    closeSync(fd)
    rmSync(folder, { recursive: true })
  })
  return { path, fd, text: () => readFileSync(path, 'utf8') }
}

test('lines are gathered, and written in their order a moment later', async (t) => {
  const { fd, text } = file(t)
  const log = new LogDestination(fd, 1000000)
  t.after(() => { log.close() })
  for (let i = 0; i < 5; i++) log.write(`${i}\n`)
  equal(text(), '')
  await until(() => text() === '0\n1\n2\n3\n4\n', { what: 'the lines' })
})

test('much at once is written whole and in order, and what comes meanwhile follows', async (t) => {
  const { fd, text } = file(t)
  const log = new LogDestination(fd, 100000000)
  t.after(() => { log.close() })
  let expected = ''
  for (let i = 0; i < 20000; i++) {
    const line = `${i} ${'é'.repeat(i % 50)}\n`
    expected += line
    log.write(line)
    if (i % 1000 === 0) await new Promise((resolve) => { setImmediate(resolve) })
  }
  await until(() => text().length === expected.length, { what: 'all lines' })
  equal(text(), expected)
})

test('what does not fit is dropped, counted and told of', async (t) => {
  const { fd, text } = file(t)
  const log = new LogDestination(fd, 100)
  t.after(() => { log.close() })
  log.write(`${'a'.repeat(80)}\n`)
  log.write(`${'b'.repeat(80)}\n`)
  log.write(`${'c'.repeat(80)}\n`)
  equal(log.dropped, 2)
  await until(() => text().includes('log_lines_dropped'), { what: 'the count' })
  match(text(), /"msg":"log_lines_dropped","count":2/)
  ok(!text().includes('b'))
})

test('closing writes what waits', (t) => {
  const { fd, text } = file(t)
  const listeners = process.listenerCount('exit')
  const log = new LogDestination(fd, 1000)
  log.write('last\n')
  log.close()
  equal(text(), 'last\n')
  equal(process.listenerCount('exit'), listeners)
})

const program = (body: string): string => `
import { LogDestination } from ${JSON.stringify(module)}
const log = new LogDestination(1, 1000000)
${body}`

test('what waits is written when the process exits, and when it dies of an error', () => {
  const run = (body: string): string => {
    try {
      return execFileSync(process.execPath, ['--input-type=module', '-e', program(body)], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    } catch (error) {
      return (error as { stdout: string }).stdout
    }
  }
  equal(run('log.write("one\\n"); process.exit(0)'), 'one\n')
  equal(run('log.write("two\\n"); throw new Error("crash")'), 'two\n')
})

test('a full disk ends nothing: the process goes on, and exits when it wants to', async () => {
  const full = openSync('/dev/full', 'w')
  const child = spawn(process.execPath, ['--input-type=module', '-e', program('log.write("lost\\n"); setTimeout(() => { log.write("lost\\n"); process.exit(7) }, 600)')], { stdio: ['ignore', full, 'inherit'] })
  const code = await new Promise((resolve) => { child.on('exit', resolve) })
  closeSync(full)
  equal(code, 7)
})

test('a reader that stands still holds up neither the process nor its exit', async () => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program('for (let i = 0; i < 10; i++) log.write("x".repeat(100000) + "\\n"); setTimeout(() => process.exit(7), 500)')], { stdio: ['ignore', 'pipe', 'inherit'] })
  child.stdout.pause()
  const code = await new Promise((resolve) => { child.on('exit', resolve) })
  equal(code, 7)
  child.stdout.destroy()
})
