/** What is installed from the package: not the repository, but what `files` in package.json takes along. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { shipped } from '../config/support.ts'

const root = dirname(shipped('package-lock.json'))
const work = mkdtempSync(join(tmpdir(), 'breakwater-package-'))
after(() => { rmSync(work, { recursive: true, force: true }) })

/** Starts what is installed, asks for the page and all its files, and prints each with its status and type. */
const program = `
import Fastify from 'fastify'
import adminRoutes from 'fastify-breakwater/routes/admin'
const app = Fastify()
await app.register(adminRoutes, { prefix: '/ops', loopbackOnly: true })
const { body } = await app.inject('/ops/')
const names = new Set([...body.matchAll(/(?:src|href)="(page[^"]+)"/g)].map(([, name]) => name))
for (const name of names) {
  const file = await app.inject('/ops/' + name)
  console.log(name, file.statusCode, file.headers['content-type'])
  for (const [, next] of file.body.matchAll(/from '\\.\\/([\\w-]+\\.js)'/g)) names.add('page/' + next)
}
`

test('a packed install serves the admin page, with the charts of a package that is no development dependency', () => {
  execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', work], { cwd: root, stdio: 'pipe' })
  const [archive] = readdirSync(work)
  const modules = join(work, 'node_modules')
  const home = join(modules, 'fastify-breakwater')
  mkdirSync(home, { recursive: true })
  execFileSync('tar', ['xzf', join(work, archive as string), '--strip-components=1', '-C', home])
  // What npm would install beside it.
  const { dependencies } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as { dependencies: Record<string, string> }
  for (const name of Object.keys(dependencies)) {
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), join(modules, name))
  }
  const told = execFileSync(process.execPath, ['--input-type=module', '-e', program], { cwd: work, encoding: 'utf8' }).trim().split('\n')
  assert.ok(told.length > 20, told.join('\n'))
  assert.deepEqual(told.filter((line) => !/ 200 (?:text|image)\//.test(line)), [])
  for (const name of ['page/main.js', 'page/style.css', 'page/uPlot.iife.min.js', 'page/uPlot.min.css']) assert.ok(told.some((line) => line.startsWith(name)), name)
})
