/** Tables, trees and examples of output, compared with what they are about. */
import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { basename, join, posix } from 'node:path'
import { test } from 'node:test'
import Fastify from 'fastify'
import { build } from '../../examples/whole-gateway.ts'
import { adminRoutes } from '../../index.ts'
import * as everything from '../../index.ts'
import { accessLine } from '../../lib/access-line.ts'
import { Exchange } from '../../lib/exchange.ts'
import { pageOf, pages, root } from './pages.ts'

const readme = pageOf('README.md')
const hidden = new Set(['node_modules', 'dist', 'coverage'])

function foldersIn (folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && !hidden.has(entry.name))
    .map(({ name }) => `${posix.join(folder, name)}/`)
}

test('docs/architecture.md: the tree has every folder of the root, of lib, plugins and routes, and no other', () => {
  const [tree] = pageOf('docs/architecture.md').blocks
  const told = tree?.text.split('\n').filter((line) => line !== '').map((line) => line.split(/\s/)[0])
  assert.deepEqual(told, ['', 'lib', 'plugins', 'routes'].flatMap(foldersIn).toSorted())
})

test('README.md: its table of plugins has what the package gives out, each with its page', () => {
  const [, table = ''] = /### The plugins\n([^]*?)\n## /.exec(readme.text) ?? []
  const named = [...table.matchAll(/\[`(\w+)`\]\((docs\/plugins\/[\w-]+\.md)\)/g)]
  const plugins = Object.entries(everything).filter(([name, value]) => typeof value === 'function' && value.length <= 2 && !['default', 'breakwater', 'parseConfig', 'diffConfig', 'serverOptions', 'ConfigError'].includes(name) && /^[a-z]/.test(name))
  assert.deepEqual(named.map(([, name]) => name).toSorted(), plugins.map(([name]) => name).toSorted())
  const index = pageOf('docs/README.md').text
  for (const { name } of pages) if (name.startsWith('docs/plugins/')) assert.ok(index.includes(`(plugins/${basename(name)})`), `docs/README.md does not list ${name}`)
})

test('README.md: its table of admin routes is what the gateway serves', async (t) => {
  const app = await build(['http://127.0.0.1:9'], 0)
  app.log.level = 'silent'
  t.after(() => app.close())
  const admin = Fastify()
  t.after(() => admin.close())
  const served: string[] = []
  admin.addHook('onRoute', ({ method, url, schema }) => {
    // What only refuses is hidden, and HEAD goes with GET.
    if ((schema as { hide?: boolean } | undefined)?.hide === true || method === 'HEAD') return
    served.push(`${String(method)} ${url}`)
  })
  await app.ready()
  await admin.register(adminRoutes, { source: app, loopbackOnly: true, config: {} })
  const [, table = ''] = /## Admin routes\n([^]*?)\n## /.exec(readme.text) ?? []
  assert.deepEqual([...table.matchAll(/`((?:GET|POST) [^`]+)`/g)].map(([, route]) => route).toSorted(), served.toSorted())
})

test('README.md: its log line has the fields of an access line, in their order', () => {
  const [example] = readme.blocks.filter(({ language }) => language === 'json')
  const fields = Object.keys(JSON.parse(example?.text ?? '') as object)
  const line = accessLine(new Exchange('id', '127.0.0.1', 0), 'GET', '/', 200, 0, 1)
  assert.deepEqual(fields, ['level', 'time', 'pid', 'hostname', ...Object.keys(line), 'msg'])
})

test('docs/plugins/access-log.md: its table has the fields of an access line', () => {
  const [, table = ''] = /## The line\n([^]*)$/.exec(pageOf('docs/plugins/access-log.md').text) ?? []
  const told = table.split('\n').filter((row) => row.startsWith('| `')).flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, field]) => field))
  assert.deepEqual(told, Object.keys(accessLine(new Exchange('id', '127.0.0.1', 0), 'GET', '/', 200, 0, 1)))
})

test('decisions are numbered without a gap, have their three parts, and are listed', () => {
  const decisions = pages.filter(({ name }) => name.startsWith('docs/decisions/'))
  const index = pageOf('docs/README.md').text
  assert.ok(decisions.length >= 11)
  for (const [at, { name, text }] of decisions.entries()) {
    const number = String(at + 1).padStart(4, '0')
    assert.ok(basename(name).startsWith(`${number}-`), name)
    assert.deepEqual([...text.matchAll(/^#+ (.*)$/gm)].map(([, heading], i) => i === 0 ? heading?.slice(0, 6) : heading), [`${number}: `, 'Context', 'Decision', 'Consequences'], name)
    assert.ok(index.includes(`(decisions/${basename(name)})`), `docs/README.md does not list ${name}`)
  }
})

test('CHANGELOG.md: unreleased changes are on top, then the version of package.json', () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const headings = [...pageOf('CHANGELOG.md').text.matchAll(/^## \[([^\]]+)\]/gm)].map(([, name]) => name)
  assert.deepEqual(headings.slice(0, 2), ['Unreleased', version])
})

test('the license is MIT, and the authors hold it together', () => {
  const { license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { license: string }
  assert.equal(license, 'MIT')
  assert.match(readFileSync(join(root, 'LICENSE'), 'utf8'), /^MIT License\n\nCopyright \(c\) \d{4} The Breakwater authors\n/)
})
