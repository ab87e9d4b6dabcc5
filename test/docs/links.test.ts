/** What the pages point at is there: links, files, commands, options, names in logs. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { test } from 'node:test'
import { commands } from '../../bin/cli/commands.ts'
import { optionSections } from '../../docs/options-table.ts'
import { filesBelow, pages, quoted, root } from './pages.ts'

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string>, name: string }

/** A heading as hosts of Markdown make an anchor of it. */
const anchorOf = (heading: string): string => heading.toLowerCase().replace(/[^\w\- ]/g, '').replaceAll(' ', '-')

test('every link to a file or a heading of ours leads somewhere', () => {
  for (const { name, prose } of pages) {
    for (const [, target] of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target as string)) continue
      const [path = '', anchor] = (target as string).split('#')
      const file = path === '' ? name : posix.join(dirname(name), path)
      assert.ok(existsSync(join(root, file)), `${name} links to ${target}`)
      if (anchor === undefined) continue
      const headings = [...readFileSync(join(root, file), 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchorOf(heading as string))
      assert.ok(headings.includes(anchor), `${name} links to ${target}`)
    }
  }
})

/** A compiled file is there when its source is. */
const isThere = (file: string): boolean => existsSync(join(root, file.replace(/^dist\/(.*)\.js$/, '$1.ts')))
const ours = /^(?:bench|bin|config|deploy|dist|docs|examples|lib|plugins|routes|test)\//

test('every file and folder of ours that a page names is there', () => {
  let seen = 0
  for (const page of pages) {
    for (const text of quoted(page)) {
      if (!/^[\w./-]+$/.test(text)) continue
      const file = /\w\.(?:ts|js|mjs|md|yaml|json|service)$/.test(text) && (ours.test(text) || !text.includes('/'))
      if (file) assert.ok(isThere(text), `${page.name} names the file ${text}`)
      else if (ours.test(text) && text.endsWith('/') && text !== 'dist/') assert.ok(statSync(join(root, text), { throwIfNoEntry: false })?.isDirectory(), `${page.name} names the folder ${text}`)
      else continue
      seen++
    }
  }
  assert.ok(seen > 50, `only ${seen} were found`)
})

test('every command of ours that a page shows can be run', () => {
  let seen = 0
  for (const { name, text } of pages) {
    for (const [, script] of text.matchAll(/\bnpm run (?:--silent )?([\w:]+)/g)) {
      assert.ok(script !== undefined && Object.hasOwn(manifest.scripts, script), `${name}: npm run ${script}`)
      seen++
    }
    for (const [, script] of text.matchAll(/\bnpm (start|test)\b/g)) assert.ok(Object.hasOwn(manifest.scripts, script as string), `${name}: npm ${script}`)
    for (const [, file] of text.matchAll(/\bnode ([\w./-]+\.m?js)\b/g)) {
      assert.ok(isThere(file as string), `${name}: node ${file}`)
      seen++
    }
    for (const [, command] of text.matchAll(/dist\/bin\/breakwater\.js ([\w-]+)/g)) assert.ok(commands.some((each) => each.name === command), `${name}: breakwater ${command}`)
  }
  assert.ok(seen > 10, `only ${seen} were found`)
  assert.deepEqual(['start', 'test', 'build', 'lint'].filter((script) => !Object.hasOwn(manifest.scripts, script)), [])
})

test('the flags of the scripted upstream that a page shows are there', () => {
  const options = readFileSync(join(root, 'bin/upstream-options.ts'), 'utf8')
  for (const { name, text } of pages) {
    for (const [, flags] of text.matchAll(/breakwater\.js upstream((?: --?[\w-]+(?: [\w.]+)?)+)/g)) {
      for (const [, flag] of (flags as string).matchAll(/--([\w-]+)/g)) assert.ok(options.includes(`flag: '${flag}'`), `${name}: --${flag}`)
    }
  }
})

const rows = optionSections().flatMap((section) => [section.path, ...section.rows.map(({ path }) => path)]).filter((path) => path !== '')
/** `health.path`, as a page may call `pools.<name>.health.path`. */
const isOption = (key: string): boolean => rows.some((path) => [path, path.replaceAll('[]', '')].some((each) => each === key || each.endsWith(`.${key}`)))

/** Attributes of spans are called like options. */
const attributes: ReadonlySet<string> = new Set(['server.address', 'server.port'])

test('every option that a page names is in the schema', () => {
  let seen = 0
  for (const page of pages) {
    for (const text of quoted(page)) {
      const [, key] = /^((?:server|admin|shedding|pools|routes|health|breaker|timeouts|connections|tls|window|halfOpen|shutdown|pressure)(?:\.(?:<name>|[A-Za-z]+)(?:\[\])?)+)(?::.*)?$/.exec(text) ?? []
      if (key === undefined || attributes.has(key) || /\.(?:ts|js|md|yaml)$/.test(key)) continue
      assert.ok(isOption(key), `${page.name} names the option ${key}`)
      seen++
    }
  }
  assert.ok(seen > 50, `only ${seen} were found`)
})

test('every variable of ours that a page names is read by the code', () => {
  const sources = filesBelow(['bin', 'config', 'examples'], '.ts').map((file) => readFileSync(join(root, file), 'utf8')).join('\n')
  for (const { name, text } of pages) {
    for (const [variable] of text.matchAll(/\bBREAKWATER_[A-Z_]+\b/g)) {
      // Codes of errors begin like variables.
      const known = sources.includes(`'${variable}'`) || filesBelow(['plugins', 'routes'], '.ts').some((file) => readFileSync(join(root, file), 'utf8').includes(`'${variable}'`))
      assert.ok(known, `${name} names ${variable}`)
    }
  }
})

test('every code that a page names, a reason, a cause, a log line or a field of one, is in the code', () => {
  const files = [...filesBelow(['bin', 'config', 'lib', 'plugins', 'routes'], '.ts'), ...filesBelow(['deploy'], '.yaml')]
  const sources = files.map((file) => readFileSync(join(root, file), 'utf8')).join('\n')
  const words = new Set(sources.match(/\b[a-z]+(?:_[a-z]+)+\b/g))
  let seen = 0
  for (const page of pages) {
    for (const text of quoted(page)) {
      // Those of metrics are not judged here; `status_503` and the like are made of a number.
      if (!/^[a-z]+(?:_[a-z]+)+$/.test(text) || text.startsWith('edge_') || text.startsWith('keepalive_')) continue
      assert.ok(words.has(text), `${page.name} names ${text}`)
      seen++
    }
  }
  assert.ok(seen > 50, `only ${seen} were found`)
})

test('no page knows a package registry or anybody\'s machine', () => {
  for (const { name, text } of pages) {
    assert.doesNotMatch(text, /\bregistry\.[a-z]+\.(?:org|com|io|dev)\b/, name)
    assert.doesNotMatch(text, /(?:^|[\s"'`(=])\/(?:home|Users|root|work|mnt)\/\w/m, name)
  }
})
