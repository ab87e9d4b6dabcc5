// Runs the compiled tests: `node test/run.mjs [part of a path ...] [--test-name-pattern=... and other flags of node]`.
// Reporter: spec on a terminal, tap elsewhere; both end with node's own summary (in tap: `# tests N` ... `# fail 0`).
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const limitMs = Number(process.env.BREAKWATER_TEST_LIMIT_MS ?? 600_000)

/** Paths below the root, with forward slashes, in a stable order. */
function filesBelow (folder, suffix) {
  if (!existsSync(join(root, folder))) return []
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && entry.name.endsWith(suffix))
    .map(entry => relative(root, join(entry.parentPath ?? entry.path, entry.name)).split(sep).join('/'))
    .toSorted()
}

function fail (message) {
  console.error(`test/run.mjs: ${message}`)
  process.exit(1)
}

const filters = process.argv.slice(2).filter(argument => !argument.startsWith('-'))
const flags = process.argv.slice(2).filter(argument => argument.startsWith('-'))
const wanted = file => filters.length === 0 || filters.some(filter => file.includes(filter))

const sources = filesBelow('test', '.test.ts')
const compiledOf = source => `dist/${source.slice(0, -'.ts'.length)}.js`
const known = new Set(sources.map(compiledOf))
const compiled = new Set(filesBelow('dist/test', '.test.js'))

for (const file of compiled) {
  if (!known.has(file)) console.error(`test/run.mjs: ignored ${file}: its source is gone`)
}
// A filter is matched against the source's path, as that is what a developer types.
const chosen = sources.filter(wanted)
const unbuilt = chosen.filter(source => !compiled.has(compiledOf(source)))
if (unbuilt.length > 0) fail(`not built: ${unbuilt.join(', ')}; run the build first`)
if (chosen.length === 0) fail(filters.length === 0 ? 'there is no test' : `no test matches ${filters.join(', ')}`)

// Each file in a process of its own loads and compiles the whole proxy once more, which is most of what a small one takes. In these
// folders no test touches what all in a process share, so that a few files go together; by name they are run alone.
const together = ['test/config/', 'test/routes/', 'test/bench/', 'test/e2e/forwarder/', 'test/e2e/edge/', 'test/e2e/retries/']
const filesPerProcess = 5

function programs () {
  if (filters.length > 0) return chosen.map(compiledOf)
  const folder = join(root, 'dist/test/.together')
  rmSync(folder, { recursive: true, force: true })
  const groups = together.flatMap(part => {
    const files = chosen.filter(file => file.startsWith(part))
    return Array.from({ length: Math.ceil(files.length / filesPerProcess) }, (_each, i) => files.slice(i * filesPerProcess, (i + 1) * filesPerProcess))
  })
  const grouped = groups.map((files, i) => {
    const name = join(folder, `${i}.mjs`)
    mkdirSync(folder, { recursive: true })
    writeFileSync(name, files.map(file => `import '../../../${compiledOf(file)}'\n`).join(''))
    return relative(root, name)
  })
  return [...grouped, ...chosen.filter(file => !together.some(part => file.startsWith(part))).map(compiledOf)]
}

const reporter = process.stdout.isTTY ? 'spec' : 'tap'
// Set by a test runner that we run under; with it node would report to that one and not to us.
delete process.env.NODE_TEST_CONTEXT
// A group of its own, so that what the tests spawn is ended with them.
const grouped = process.platform !== 'win32'
const child = spawn(process.execPath, [
  // A file that hangs is named by its own limit, well before the whole run is killed. Three at a time, as they wait for their
  // sockets half of the time: with two cores there is always one to do something.
  '--test', '--test-concurrency=3', '--test-timeout=180000', `--test-reporter=${reporter}`, '--test-reporter-destination=stdout', ...flags, ...programs()
], { cwd: root, stdio: 'inherit', detached: grouped })

function endAll (signal) {
  try {
    if (grouped) process.kill(-child.pid, signal)
    else child.kill(signal)
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}

const timer = setTimeout(() => {
  endAll('SIGKILL')
  fail(`the tests did not end within ${limitMs / 1000} s and were killed`)
}, limitMs)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    endAll('SIGKILL')
    fail(`stopped by ${signal}`)
  })
}
child.on('error', error => fail(error.message))
child.on('exit', (code, signal) => {
  clearTimeout(timer)
  endAll('SIGKILL')
  if (signal !== null) console.error(`test/run.mjs: the test runner ended by ${signal}`)
  process.exitCode = code ?? 1
})
