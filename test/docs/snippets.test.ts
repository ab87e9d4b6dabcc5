import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { filesBelow, pageOf, pages, root } from './pages.ts'

const dist = join(dirname(fileURLToPath(import.meta.url)), '../..')
const work = mkdtempSync(join(tmpdir(), 'breakwater-snippets-'))
after(() => { rmSync(work, { recursive: true, force: true }) })

/** What an example shows: its region, with the imports that a user of the package writes. */
function regionOf (example: string): string {
  const [, region] = /^\/\/ #region\n([^]*?)^\/\/ #endregion\n/m.exec(readFileSync(join(root, example), 'utf8')) ?? []
  assert.ok(region !== undefined, `${example} has no region`)
  return region.replace(/'(?:\.\.\/)+index\.ts'/g, '\'fastify-breakwater\'').replace(/'(?:\.\.\/)+((?:plugins|routes)\/[^']+)\.ts'/g, '\'fastify-breakwater/$1\'')
}

for (const { name, blocks } of pages) {
  for (const { info, text } of blocks.filter(({ language }) => language === 'ts')) {
    test(`${name} shows ${info} as it is`, () => {
      assert.match(info, /^examples\/[a-z/-]+\.ts$/, 'a ts block names the example that it is from')
      assert.equal(text, regionOf(info))
    })
  }
}

test('README.md shows five uses, and every example is shown somewhere', () => {
  const shown = (name: string): string[] => pageOf(name).blocks.filter(({ language }) => language === 'ts').map(({ info }) => info)
  assert.deepEqual(shown('README.md').toSorted(), ['admin-under-prefix', 'breaker-alone', 'fastify-cli', 'forward-in-a-route', 'whole-gateway'].map((name) => `examples/${name}.ts`))
  const everywhere = new Set(pages.flatMap(({ name }) => shown(name)))
  for (const example of filesBelow(['examples'], '.ts')) {
    // The page of a plugin may have a snippet of its own.
    const page = `docs/plugins/${basename(example, '.ts')}.md`
    assert.ok(everywhere.has(example) || pages.some(({ name }) => name === page), `${example} is shown nowhere`)
  }
})

const specifier = /from '(fastify-breakwater[^']*)'/g
const imported = /^import (?:(\w+),? )?(?:\{([^}]*)\} )?from '(fastify-breakwater[^']*)'/gm

/** The compiled file that package.json gives out under a name. */
function exported (name: string): string {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: Record<string, { default: string }> }
  const path = name === 'fastify-breakwater' ? '.' : name.replace('fastify-breakwater', '.')
  for (const [pattern, target] of Object.entries(exports)) {
    const [start, end] = pattern.split('*') as [string, string | undefined]
    if (end === undefined ? path === pattern : path.startsWith(start)) return join(dist, target.default.replace('./dist/', '').replace('*', path.slice(start.length)))
  }
  throw new Error(`package.json gives out no ${name}`)
}

for (const { name, blocks } of pages) {
  const scripts = blocks.filter(({ language }) => language === 'js' || language === 'ts')
  if (scripts.length === 0) continue
  test(`${name}: what its snippets import from the package is there, and they are JavaScript`, async () => {
    for (const { language, text } of scripts) {
      const imports = [...text.matchAll(imported)]
      assert.equal(imports.length, [...text.matchAll(specifier)].length, 'an import that this test does not understand')
      for (const [, byDefault, named = '', from] of imports) {
        const module = await import(pathToFileURL(exported(from as string)).href) as Record<string, unknown>
        const names = named.split(',').map((each) => each.trim()).filter((each) => each !== '' && !each.startsWith('type '))
        for (const each of byDefault === undefined ? names : ['default', ...names]) assert.ok(Object.hasOwn(module, each), `${from} has no ${each}`)
      }
      if (language !== 'js') continue
      const file = join(work, 'snippet.mjs')
      writeFileSync(file, text)
      const { status, stderr } = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8' })
      assert.equal(status, 0, stderr)
    }
  })
}
