import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { appendFileSync, closeSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { watchFile, type FileWatchOptions } from '../../plugins/file-watch.ts'
import { until } from '../support/wait.ts'
import { folder } from './discovery/fixtures.ts'

/** The poll that only the tests of polling wait for. */
const never = 3_600_000

/** Watches a file and keeps what is told: contents, and codes of errors in brackets. */
function watching (t: TestContext, path: string, options: Partial<FileWatchOptions> = {}) {
  const told: string[] = []
  const seen = { same: 0 }
  const stop = watchFile(path, {
    pollMs: never,
    onChange: (content) => { told.push(content.toString()) },
    onError: ({ code }) => { told.push(`[${code}]`) },
    onSame: () => { seen.same++ },
    ...options
  })
  t.after(stop)
  return { told, seen, stop, latest: (text: string) => until(() => told.at(-1) === text, { what: `${text} after ${told.join()}` }) }
}

function file (t: TestContext, content?: string): string {
  const path = join(folder(t), 'file.yaml')
  if (content !== undefined) writeFileSync(path, content)
  return path
}

test('the first content is told at once, and each other one after it', async (t) => {
  const path = file(t, 'one')
  const { told, latest } = watching(t, path)
  await latest('one')
  for (const text of ['two', 'three', '']) {
    writeFileSync(path, text)
    await latest(text)
  }
  assert.deepEqual(told, ['one', 'two', 'three', ''])
})

test('what the caller knows already is not told, and what differs from it is', async (t) => {
  const path = file(t, 'one')
  const { told, seen, latest } = watching(t, path, { known: Buffer.from('one') })
  await until(() => seen.same > 0)
  assert.deepEqual(told, [])
  const other = watching(t, path, { known: Buffer.from('zero') })
  await other.latest('one')
  writeFileSync(path, 'two')
  await latest('two')
})

test('a file that is renamed over the watched one is seen, again and again', async (t) => {
  const path = file(t, 'one')
  const { told, latest } = watching(t, path)
  await latest('one')
  for (let round = 0; round < 5; round++) {
    writeFileSync(`${path}.new`, `round ${round}`)
    renameSync(`${path}.new`, path)
    await latest(`round ${round}`)
  }
  assert.equal(told.length, 6)
})

test('an editor that moves the old file away and writes a new one makes one change', async (t) => {
  const path = file(t, 'one')
  const { told, latest } = watching(t, path)
  await latest('one')
  renameSync(path, `${path}~`)
  writeFileSync(path, 'two')
  unlinkSync(`${path}~`)
  await latest('two')
  assert.deepEqual(told, ['one', 'two'])
})

test('a ConfigMap is updated by a symlink that is swapped', async (t) => {
  const root = folder(t)
  const publish = (version: string): void => {
    mkdirSync(join(root, version))
    writeFileSync(join(root, version, 'file.yaml'), version)
    symlinkSync(version, join(root, '..data_tmp'))
    renameSync(join(root, '..data_tmp'), join(root, '..data'))
  }
  publish('..v1')
  symlinkSync('..data/file.yaml', join(root, 'file.yaml'))
  const { told, latest } = watching(t, join(root, 'file.yaml'))
  await latest('..v1')
  for (const version of ['..v2', '..v3']) {
    publish(version)
    await latest(version)
  }
  rmSync(join(root, '..v1'), { recursive: true })
  assert.deepEqual(told, ['..v1', '..v2', '..v3'])
})

test('a change behind a symlink to elsewhere is found by the poll', async (t) => {
  const real = file(t, 'one')
  const path = join(folder(t), 'link.yaml')
  symlinkSync(real, path)
  const { latest } = watching(t, path, { pollMs: 100 })
  await latest('one')
  writeFileSync(real, 'two')
  await latest('two')
})

test('the same content written again is no change', async (t) => {
  const path = file(t, 'one')
  const { told, seen, latest } = watching(t, path)
  await latest('one')
  const before = seen.same
  writeFileSync(path, 'one')
  await until(() => seen.same > before)
  assert.deepEqual(told, ['one'])
})

test('a file that is being written is told when it is whole', async (t) => {
  const path = file(t, 'old')
  const { told, latest } = watching(t, path)
  await latest('old')
  const fd = openSync(path, 'w')
  for (let part = 0; part < 20; part++) {
    writeSync(fd, `part ${part}\n`)
    await sleep(10)
  }
  closeSync(fd)
  await latest(readFileSync(path, 'utf8'))
  // On a machine that is busy the writer may pause for so long that a part counts.
  assert.ok(told.length < 20, told.join('|'))
})

test('a file that never rests is told nevertheless', async (t) => {
  const path = file(t, 'start')
  const { told, latest } = watching(t, path)
  await latest('start')
  let written = 0
  const writer = setInterval(() => { writeFileSync(path, `write ${written++}`) }, 5)
  t.after(() => { clearInterval(writer) })
  await until(() => told.length > 1, { timeoutMs: 20000 })
})

test('a file that is gone is one error; back with its content it is no change, with another one it is', async (t) => {
  const path = file(t, 'one')
  const { told, seen, latest } = watching(t, path)
  await latest('one')
  unlinkSync(path)
  await latest('[ENOENT]')
  const before = seen.same
  writeFileSync(path, 'one')
  await until(() => seen.same > before)
  unlinkSync(path)
  await until(() => told.length === 3)
  writeFileSync(path, 'two')
  await latest('two')
  assert.deepEqual(told, ['one', '[ENOENT]', '[ENOENT]', 'two'])
})

test('a file that is not there yet is an error, once, and a content when it comes', async (t) => {
  const path = file(t)
  const { told, latest } = watching(t, path)
  await latest('[ENOENT]')
  writeFileSync(`${path}.other`, 'a sign that makes it look')
  writeFileSync(path, 'one')
  await latest('one')
  assert.deepEqual(told, ['[ENOENT]', 'one'])
})

test('a folder that comes, goes and comes again is watched each time', async (t) => {
  const root = join(folder(t), 'etc')
  const path = join(root, 'file.yaml')
  const { latest } = watching(t, path, { pollMs: 100 })
  await latest('[ENOENT]')
  for (let round = 0; round < 3; round++) {
    mkdirSync(root)
    writeFileSync(path, `round ${round}`)
    await latest(`round ${round}`)
    rmSync(root, { recursive: true })
    await latest('[ENOENT]')
  }
})

test('a folder, a pipe and a file without an end are errors, not waits', async (t) => {
  const root = folder(t)
  execFileSync('mkfifo', [join(root, 'pipe')])
  writeFileSync(join(root, 'large'), Buffer.alloc(1_048_577))
  for (const [path, code] of [[root, 'EINVAL'], [join(root, 'pipe'), 'EINVAL'], ['/dev/zero', 'EINVAL'], [join(root, 'large'), 'EFBIG']] as const) {
    await watching(t, path).latest(`[${code}]`)
  }
  writeFileSync(join(root, 'large'), Buffer.alloc(1_048_576, 'x'))
  const { told } = watching(t, join(root, 'large'))
  await until(() => told[0]?.length === 1_048_576)
})

test('a file of the kernel, which tells no size, is read whole', async (t) => {
  const { told } = watching(t, '/proc/self/limits')
  await until(() => told.length > 0)
  assert.match(told[0]!, /Max open files/)
})

test('nothing is told behind the stop, not even of a look under way, and stopping twice is nothing', async (t) => {
  const path = file(t, 'one')
  const early = watching(t, path)
  early.stop()
  const late = watching(t, path)
  await late.latest('one')
  writeFileSync(path, 'two')
  late.stop()
  late.stop()
  const witness = watching(t, path)
  await witness.latest('two')
  writeFileSync(path, 'three')
  await witness.latest('three')
  assert.deepEqual([early.told, late.told], [[], ['one']])
})

test('a stop from within is a stop', async (t) => {
  const path = file(t, 'one')
  const told: string[] = []
  const stop = watchFile(path, {
    pollMs: 100,
    onChange: (content) => {
      told.push(content.toString())
      stop()
    },
    onError: () => {}
  })
  t.after(stop)
  await until(() => told.length === 1)
  const witness = watching(t, path)
  appendFileSync(path, ' and more')
  await witness.latest('one and more')
  assert.deepEqual(told, ['one'])
})

test('watching does not keep a process alive', async (t) => {
  const path = file(t, 'one')
  const module = new URL('../../plugins/file-watch.js', import.meta.url).href
  const program = `
    import { watchFile } from ${JSON.stringify(module)}
    await new Promise((resolve) => {
      watchFile(${JSON.stringify(path)}, { pollMs: 100, onChange: (content) => resolve(console.log(content.toString())), onError: console.log })
    })`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { timeout: 30000 })
  assert.equal(stdout.trim(), 'one')
})
