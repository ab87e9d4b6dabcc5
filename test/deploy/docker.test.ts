/** There is no Docker here: the Dockerfile is read, and its steps are done by hand as far as they need neither Docker nor a network. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { shipped } from '../config/support.ts'
import { spawnNode } from '../support/process.ts'
import { copiesOf, parseDockerfile, valuesOf, type Stage } from './dockerfile.ts'

const root = dirname(shipped('Dockerfile'))
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const [build, runtime, ...rest] = parseDockerfile(readFileSync(join(root, 'Dockerfile'), 'utf8')) as [Stage, Stage]
const ignored = readFileSync(join(root, '.dockerignore'), 'utf8').split('\n').filter((line) => line !== '' && !line.startsWith('#'))

const work = mkdtempSync(join(tmpdir(), 'breakwater-docker-'))
after(() => { rmSync(work, { recursive: true, force: true }) })
const folders = { build: join(work, 'build'), runtime: join(work, 'runtime') }

/** The names that a source of COPY stands for, such as `*.ts`. */
function expand (base: string, source: string): string[] {
  if (!source.includes('*')) return [source]
  const folder = dirname(source)
  const [start, end] = basename(source).split('*') as [string, string]
  return readdirSync(join(base, folder)).filter((name) => name.startsWith(start) && name.endsWith(end)).map((name) => join(folder, name))
}

/** Does the COPY lines of a stage in the order that they stand in. */
function copyInto (stage: Stage, folder: string): void {
  mkdirSync(folder, { recursive: true })
  for (const { from, sources, target } of copiesOf(stage)) {
    const base = from === null ? root : folders.build
    for (const source of sources.flatMap((each) => expand(base, from === null ? each : each.replace(/^\/app\//, '')))) {
      if (from === null) assert.ok(!ignored.includes(source), `${source} is copied, but .dockerignore keeps it out`)
      const into = join(folder, target, target.endsWith('/') ? basename(source) : '')
      cpSync(join(base, source), into, { recursive: true })
    }
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
}

test('Dockerfile: two stages on the slim image by name; the runtime has no development dependencies, no root and no shell', () => {
  assert.deepEqual([build.from, build.name, runtime.from, rest], ['node:22-bookworm-slim', 'build', 'node:22-bookworm-slim', []])
  assert.ok(valuesOf(build, 'RUN').some((command) => command.startsWith('npm ci ')))
  assert.ok(valuesOf(runtime, 'RUN').every((command) => command.startsWith('npm ci --omit=dev ')))
  assert.deepEqual(valuesOf(runtime, 'ENV'), ['NODE_ENV=production'])
  assert.deepEqual(valuesOf(runtime, 'USER'), ['node'])
  assert.deepEqual(valuesOf(runtime, 'EXPOSE'), ['8080'])
  assert.deepEqual(valuesOf(runtime, 'STOPSIGNAL'), ['SIGTERM'])
  assert.deepEqual(JSON.parse(valuesOf(runtime, 'CMD').join('')), ['node', 'dist/bin/breakwater.js', 'start', '-a', '0.0.0.0'])
  assert.deepEqual(valuesOf(runtime, 'ENTRYPOINT'), [])
  const names = runtime.instructions.map(({ name }) => name)
  assert.ok(names.lastIndexOf('RUN') < names.indexOf('USER') && names.lastIndexOf('COPY') < names.indexOf('USER'), 'what is installed belongs to root')
})

test('.dockerignore keeps secrets, history and what was built elsewhere out of the image', () => {
  for (const name of ['.git', 'node_modules', 'dist', '.env', 'test']) assert.ok(ignored.includes(name), name)
})

test('Dockerfile: what is copied builds, and what is left of it starts, is healthy and stops on SIGTERM', async (t) => {
  copyInto(build, folders.build)
  const built = spawnSync('npm', ['run', '--silent', 'build'], { cwd: folders.build, encoding: 'utf8' })
  assert.equal(built.status, 0, built.stdout + built.stderr)
  copyInto(runtime, folders.runtime)
  for (const name of ['test', 'bench', 'examples']) assert.ok(!existsSync(join(folders.runtime, 'dist', name)), name)

  const [, ...command] = JSON.parse(valuesOf(runtime, 'CMD').join('')) as string[]
  const child = spawnNode(t, command, { cwd: folders.runtime, env: { NODE_ENV: 'production', PORT: '0', BREAKWATER_ADMIN_PORT: '0', BREAKWATER_UPSTREAMS: undefined, BREAKWATER_CONFIG: undefined } })
  const listening = await child.waitForLine(({ msg }) => typeof msg === 'string' && msg.startsWith('Server listening at http://127.0.0.1:'), { timeoutMs: 30_000 })
  const port = /:(\d+)$/.exec(String(listening['msg']))?.[1] ?? ''

  const check = valuesOf(runtime, 'HEALTHCHECK').join('')
  const [program, ...args] = JSON.parse(check.slice(check.indexOf('['))) as string[]
  assert.equal(program, 'node')
  const checked = async (environment: Record<string, string>) => (await spawnNode(t, args, { env: { FASTIFY_PORT: undefined, PORT: undefined, ...environment } }).exit).code
  assert.equal(await checked({ PORT: port }), 0)
  assert.equal(await checked({ FASTIFY_PORT: port, PORT: '1' }), 0)
  assert.equal(await checked({ PORT: '1' }), 1)

  child.kill('SIGTERM')
  assert.deepEqual(await child.exit, { code: 0, signal: null })
})

test('what the runtime imports is in the package, or one of its dependencies', () => {
  const [{ files }] = JSON.parse(execFileSync('npm', ['pack', '--dry-run', '--json', '--offline'], { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }))
  const packed = new Set<string>(files.map(({ path }: { path: string }) => path))
  for (const name of ['LICENSE', 'README.md', 'config/full.yaml', 'deploy/breakwater.service', 'dist/index.d.ts']) assert.ok(packed.has(name), `${name} is packed`)
  for (const name of packed) assert.ok(!/^(?:dist\/(?:test|bench|examples)|test|node_modules)\//.test(name), `${name} is packed`)

  const seen = new Set<string>()
  const follow = (file: string): void => {
    if (seen.has(file)) return
    seen.add(file)
    assert.ok(packed.has(file), `${file} is needed and not packed`)
    const text = readFileSync(join(root, file), 'utf8')
    for (const [, named, bare] of text.matchAll(/^(?:import|export)\b[^;()]*?\bfrom '([^']+)'|^import '([^']+)'/gm)) {
      const specifier = (named ?? bare) as string
      if (specifier.startsWith('.')) follow(join(dirname(file), specifier))
      else {
        const name = specifier.split('/').slice(0, specifier.startsWith('@') ? 2 : 1).join('/')
        const builtin = specifier.startsWith('node:') || builtinModules.includes(specifier)
        assert.ok(builtin || name === manifest.name || Object.hasOwn(manifest.dependencies, name), `${file} imports ${specifier}, which is not a dependency`)
      }
    }
  }
  for (const entry of ['dist/bin/breakwater.js', 'dist/app.js', 'dist/index.js']) follow(entry)
  assert.ok(seen.size > 40, `only ${seen.size} files were found`)
  assert.ok(Object.hasOwn(manifest.dependencies, 'fastify-cli'))
})
