import assert from 'node:assert/strict'
import { cp, mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { spawnNode } from './support/process.ts'

function runScript (): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'test', 'run.mjs'))) {
    if (dirname(folder) === folder) throw new Error('test/run.mjs is not above the compiled tests')
    folder = dirname(folder)
  }
  return join(folder, 'test', 'run.mjs')
}

const passing = 'import { test } from "node:test"; test("fine", () => {})'
const failing = 'import { test } from "node:test"; test("broken", () => { throw new Error("no") })'
const endless = 'import { test } from "node:test"; test("endless", () => new Promise(resolve => setTimeout(resolve, 60000)))'

function text (lines: Array<Record<string, unknown>>): string {
  return lines.map(line => String(line['text'])).join('\n')
}

/** Lays a project with these compiled tests (null: a source that was not built) and runs test/run.mjs in it. */
async function run (t: TestContext, compiled: Record<string, string | null>, { args = [] as string[], gone = [] as string[], env = {} } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'breakwater-run-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  await cp(runScript(), join(folder, 'test', 'run.mjs'))
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  for (const [name, source] of Object.entries(compiled)) {
    await mkdir(join(folder, 'test', dirname(name)), { recursive: true })
    await mkdir(join(folder, 'dist', 'test', dirname(name)), { recursive: true })
    if (!gone.includes(name)) await writeFile(join(folder, 'test', `${name}.test.ts`), '')
    if (source !== null) await writeFile(join(folder, 'dist', 'test', `${name}.test.js`), source)
  }
  const child = spawnNode(t, [join(folder, 'test', 'run.mjs'), ...args], { env })
  const { code } = await child.exit
  return { code, output: text(child.output.lines), errors: text(child.errors.lines) }
}

test('passing tests end with the summary and exit 0', async t => {
  const { code, output } = await run(t, { one: passing, 'deep/er/two': passing })
  assert.equal(code, 0)
  assert.match(output, /^# tests 2$/m)
  assert.match(output, /^# fail 0$/m)
  assert.match(output.split('\n').at(-1) ?? '', /^# duration_ms/)
})

test('files that share a process are all run, and one that cannot be loaded fails', async t => {
  const files = Object.fromEntries(Array.from({ length: 7 }, (_each, i) => [`config/file-${i}`, passing]))
  const { code, output } = await run(t, files)
  assert.equal(code, 0)
  assert.match(output, /^# tests 7$/m)
  assert.notEqual((await run(t, { ...files, 'config/broken': 'import "./nowhere.js"' })).code, 0)
  assert.notEqual((await run(t, { ...files, 'config/broken': failing })).code, 0)
})

test('a file that looks at its whole process has one for itself, and the longest are started first', async t => {
  const marking = 'globalThis.seen = [...(globalThis.seen ?? []), import.meta.url]'
  const told = (name: string) => `import { test } from "node:test"; ${marking}; test("${name} of " + globalThis.seen.length, () => {})`
  const { code, output } = await run(t, { 'bin/cli/drill': told('drill'), 'config/a': told('first'), 'config/b': told('second'), 'lib/hash': told('hash'), 'lib/http': told('http') })
  assert.equal(code, 0)
  assert.deepEqual([...output.matchAll(/^# Subtest: (\w+ of \d)$/gm)].map(([, name]) => name), ['drill of 1', 'hash of 1', 'first of 1', 'second of 2', 'http of 1'])
})

test('a failing test exits non-zero', async t => {
  const { code, output } = await run(t, { one: passing, two: failing })
  assert.notEqual(code, 0)
  assert.match(output, /^# fail 1$/m)
})

test('a filter chooses by a part of the path, and a flag goes to node', async t => {
  const filtered = await run(t, { 'lib/breaker/one': passing, two: failing }, { args: ['breaker'] })
  assert.equal(filtered.code, 0)
  assert.match(filtered.output, /^# tests 1$/m)
  const named = await run(t, { one: `${passing}; test("other", () => { throw new Error("no") })` }, { args: ['--test-name-pattern=fine'] })
  assert.equal(named.code, 0)
})

test('no test, or none that matches, is a failure', async t => {
  assert.deepEqual(await run(t, {}), { code: 1, output: '', errors: 'test/run.mjs: there is no test' })
  assert.deepEqual(await run(t, { one: passing }, { args: ['nothing'] }), { code: 1, output: '', errors: 'test/run.mjs: no test matches nothing' })
})

test('a compiled test whose source is gone is not run, and said', async t => {
  const { code, output, errors } = await run(t, { one: passing, 'old/stale': failing }, { gone: ['old/stale'] })
  assert.equal(code, 0)
  assert.match(output, /^# tests 1$/m)
  assert.equal(errors, 'test/run.mjs: ignored dist/test/old/stale.test.js: its source is gone')
})

test('a test that was not built is a failure, not a silence', async t => {
  const { code, errors } = await run(t, { one: passing, two: null })
  assert.equal(code, 1)
  assert.match(errors, /not built: test\/two\.test\.ts/)
})

test('a run that does not end is killed and said', async t => {
  const { code, errors } = await run(t, { one: endless }, { env: { BREAKWATER_TEST_LIMIT_MS: '800' } })
  assert.equal(code, 1)
  assert.match(errors, /did not end within 0\.8 s and were killed/)
})
