// Runs the whole suite on each Node line that we support: `npm run test:matrix [22 24 ...]`.
// The binaries are those that the npm packages `node-<platform>-<arch>` ship; they are kept in node_modules/.cache.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const lines = process.argv.length > 2 ? process.argv.slice(2) : ['20.19.3', '20', '22', '24', '26']
const platform = `${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`

function run (command, args, options = {}) {
  return spawnSync(command, args, { cwd: root, stdio: 'inherit', ...options }).status ?? 1
}

function binaryOf (line) {
  const folder = join(root, 'node_modules', '.cache', 'nodes', line)
  const binary = join(folder, 'node_modules', `node-${platform}`, 'bin', 'node')
  if (existsSync(binary)) return binary
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"private":true}')
  const status = run('npm', ['install', '--no-audit', '--no-fund', '--silent', `node-${platform}@${line}`], { cwd: folder })
  if (status !== 0 || !existsSync(binary)) throw new Error(`could not install Node ${line}`)
  return binary
}

if (run('npm', ['run', '--silent', 'build']) !== 0) process.exit(1)

const results = []
for (const line of lines) {
  const binary = binaryOf(line)
  const version = spawnSync(binary, ['--version'], { encoding: 'utf8' }).stdout.trim()
  console.log(`\n== Node ${version}`)
  const path = `${dirname(binary)}:${process.env.PATH}`
  results.push({ version, status: run(binary, ['test/run.mjs'], { env: { ...process.env, PATH: path } }) })
}

console.log('\nNode line   result')
for (const { version, status } of results) console.log(`${version.padEnd(12)}${status === 0 ? 'passed' : 'FAILED'}`)
process.exit(results.some(({ status }) => status !== 0) ? 1 : 0)
