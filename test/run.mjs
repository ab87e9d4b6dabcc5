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

// Each file in a process of its own loads and compiles the whole proxy once more, which is most of what a small one takes. So a few
// files go together, but for those that look at or change what all in a process share, or take long by themselves. By name they are
// run alone.
const alone = [
  // The longest first, so that none of them is left over at the end with the other cores idle.
  'bin/cli/drill', 'e2e/drills/', 'examples/run', 'e2e/lifecycle/process', 'conformance/', 'web/', 'fuzz/', 'e2e/log/process', 'e2e/shedding/pressure',
  'run.test', 'deploy/', 'e2e/reload/process', 'e2e/shedding/descriptors', 'e2e/soak', 'e2e/bytes', 'bin/',
  // How much memory they take, once the code is compiled for what one file does with it.
  'plugins/flight-recorder', 'plugins/metrics/exposition', ...['complexity', 'edf', 'hash', 'least-requests', 'lowest-latency', 'p2c', 'random'].map(name => `lib/balance/${name}`), 'lib/breaker/memory', 'lib/hash', 'lib/health/ejection', 'lib/record/pack', 'lib/retry/budget',
  // The API of OpenTelemetry has one SDK in a process, or none.
  'plugins/tracing/', 'examples/tracing'
].map(part => `test/${part}`)
// What is left, with how many go together. A process has one time limit for all of its files.
const together = { 'test/e2e/': 5, 'test/plugins/': 6, 'test/routes/': 7, 'test/config/': 8, 'test/': 10 }

/** Lists of files, each for a process of its own, in the order that they are to start in. */
function groupsOf (files) {
  const rankOf = file => alone.findIndex(part => file.startsWith(part))
  const singles = files.filter(file => rankOf(file) !== -1).toSorted((a, b) => rankOf(a) - rankOf(b))
  const groups = singles.map(file => [file])
  const placeOf = file => Object.keys(together).find(part => file.startsWith(part))
  for (const [part, size] of Object.entries(together)) {
    const rest = files.filter(file => rankOf(file) === -1 && placeOf(file) === part)
    for (let i = 0; i < rest.length; i += size) groups.push(rest.slice(i, i + size))
  }
  return groups
}

/** Node runs the programs that it is given in the order of their names. */
function programs () {
  if (filters.length > 0) return chosen.map(compiledOf)
  const folder = join(root, 'dist/test/.together')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  return groupsOf(chosen).map((files, i) => {
    // A program that hangs is told by its name.
    const first = files[0].slice('test/'.length, -'.test.ts'.length).replaceAll('/', '-')
    const name = join(folder, `${String(i).padStart(3, '0')}-${first}${files.length > 1 ? `-and-${files.length - 1}` : ''}.mjs`)
    writeFileSync(name, files.map(file => `import '../../../${compiledOf(file)}'\n`).join(''))
    return relative(root, name)
  })
}

const reporter = process.stdout.isTTY ? 'spec' : 'tap'
// Set by a test runner that we run under; with it node would report to that one and not to us.
delete process.env.NODE_TEST_CONTEXT
// A group of its own, so that what the tests spawn is ended with them.
const grouped = process.platform !== 'win32'
const child = spawn(process.execPath, [
  // A program that hangs is named by its own limit, before the whole run is killed. Three at a time, as they wait for their
  // sockets half of the time: with two cores there is always one to do something.
  '--test', '--test-concurrency=3', '--test-timeout=300000', `--test-reporter=${reporter}`, '--test-reporter-destination=stdout', ...flags, ...programs()
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
