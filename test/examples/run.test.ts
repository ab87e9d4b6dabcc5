import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { shipped } from '../config/support.ts'
import { spawnNode } from '../support/process.ts'
import { ask } from './support.ts'

const compiled = join(dirname(fileURLToPath(import.meta.url)), '../../examples')
const names = readdirSync(dirname(shipped('examples/whole-gateway.ts')), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts')).map((name) => name.slice(0, -3))

test('there is an example for the whole, for each use, and for each plugin alone', () => {
  assert.ok(names.length >= 12, names.join(', '))
  for (const name of names) {
    const lines = readFileSync(shipped(`examples/${name}.ts`), 'utf8').split('\n')
    assert.ok(lines.length < 60, `examples/${name}.ts has ${lines.length} lines`)
    assert.ok(lines.filter((line) => line.trim() === '// #region').length === 1, `examples/${name}.ts has one region for the docs`)
  }
})

for (const name of names) {
  test(`examples/${name}: runs as it is, says where it listens, and answers there`, async (t) => {
    const child = spawnNode(t, [join(compiled, `${name}.js`)], { env: { PORT: '0', BREAKWATER_ADMIN_PORT: '0', BREAKWATER_ADMIN_TOKEN: 'example' } })
    const { text } = await child.waitForLine(({ text: line }) => typeof line === 'string' && line.startsWith('http://127.0.0.1:'), { timeoutMs: 30_000 })
    const { status } = await ask(String(text))
    assert.ok(status >= 200 && status < 600)
  })
}
