import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { diffLines } from '../../bin/diff-text.ts'
import { diffConfig } from '../../config/diff.ts'
import { ConfigError, formatConfigError } from '../../config/error.ts'
import { parseText } from '../../config/file.ts'
import { loadConfig } from '../../config/load.ts'
import { parseConfig } from '../../config/parse.ts'
import { redactConfig } from '../../config/redact.ts'
import { BalancerName } from '../../config/schema.ts'
import { isSecretName } from '../../config/secrets.ts'
import { selfSigned } from '../config/certificate.ts'
import { shipped } from '../config/support.ts'

const page = readFileSync(shipped('docs/configuration.md'), 'utf8')

const shop = { pools: { shop: { upstreams: [{ url: 'http://127.0.0.1:9001' }] } } }
const blocks = [...page.matchAll(/```(\w+)(?: (\w+))?\n([^]*?)```/g)].map(([, language, mark, text]) => ({ language, mark, text: text ?? '' }))

/** Runs with the files that an example names, from the folder they are in. */
const withFiles = (action: () => void): void => {
  const folder = mkdtempSync(join(tmpdir(), 'breakwater-docs-'))
  const before = process.cwd()
  const { cert, key } = selfSigned('docs')
  mkdirSync(join(folder, 'certs'))
  for (const [name, text] of [['ca.pem', cert], ['client.pem', cert], ['client.key', key]] as const) writeFileSync(join(folder, 'certs', name), text)
  process.chdir(folder)
  try {
    action()
  } finally {
    process.chdir(before)
    rmSync(folder, { recursive: true })
  }
}

const parse = (value: unknown) => parseConfig(value, 'breakwater.yaml', { env: { BREAKWATER_ADMIN_TOKEN: 'a-token', STICKY_SECRET: '0123456789abcdef0123456789abcdef' } })

/** yaml: a whole file. partial: sections to put beside a pool. files: needs files. invalid: a ConfigError, printed in the text block after it. */
const run = (mark: string | undefined, text: string, next: string | undefined): void => {
  const input = parseText(text, 'breakwater.yaml')
  if (mark === undefined) parse(input)
  else if (mark === 'partial') parse({ ...shop, ...input as object })
  else if (mark === 'files') withFiles(() => { parse(input) })
  else {
    equal(mark, 'invalid')
    throws(() => parse(input), (error: unknown) => {
      ok(error instanceof ConfigError)
      equal(`${formatConfigError(error)}\n`, next)
      return true
    })
  }
}

for (const [index, { language, mark, text }] of blocks.entries()) {
  if (language === 'yaml') test(`docs/configuration.md: block ${index + 1}`, () => { run(mark, text, blocks[index + 1]?.text) })
}

test('docs/configuration.md: what breakwater check prints is what it shows', () => {
  const [, text = ''] = /^against old\.yaml:\n([^]*?)```/m.exec(page) ?? []
  const config = (server: object, pool: object, ...upstreams: string[]) => parse({ server, pools: { shop: { upstreams: upstreams.map(url => ({ url })), ...pool } } })
  const old = config({}, {}, 'http://10.0.0.1:9001', 'http://10.0.0.2:9001')
  const next = config({ maxHeaderBytes: 32768 }, { timeouts: { headersMs: 3000 } }, 'http://10.0.0.2:9001', 'http://10.0.0.3:9001')
  deepEqual(text.trimEnd().split('\n'), diffLines(diffConfig(old, next), redactConfig(old), redactConfig(next)))
})

test('docs/configuration.md: the names that hide a value are those that it tells', () => {
  for (const name of ['authorization', 'cookie', 'x-api-key', 'x-some-token', 'a-secret']) ok(isSecretName(name), name)
})

test('docs/configuration.md: its table of balancers has all of them', () => {
  const [, table = ''] = /## How upstreams are picked\n([^]*?)```/.exec(page) ?? []
  deepEqual([...table.matchAll(/^\| `([\w-]+)` \|/gm)].map(([, name]) => name), BalancerName.enum)
})

test('docs/configuration.md: its table of variables says what overrides a file', () => {
  const rows = [...page.matchAll(/^\| `(BREAKWATER_\w+)` \|.*\| ?(yes|no|) ?\|$/gm)].map(([, name, over]) => [name, over])
  deepEqual(rows, [['BREAKWATER_CONFIG', ''], ['BREAKWATER_UPSTREAMS', 'no'], ['BREAKWATER_MAX_IN_FLIGHT', 'yes'], ['BREAKWATER_ADMIN_PORT', 'yes'], ['BREAKWATER_ADMIN_TOKEN', 'yes']])
  const folder = mkdtempSync(join(tmpdir(), 'breakwater-docs-'))
  try {
    const file = join(folder, 'breakwater.yaml')
    writeFileSync(file, JSON.stringify({ ...shop, admin: { port: 1, token: 'file' }, shedding: { maxInFlight: 1 } }))
    const { config } = loadConfig({ BREAKWATER_CONFIG: file, BREAKWATER_UPSTREAMS: 'http://other', BREAKWATER_MAX_IN_FLIGHT: '2', BREAKWATER_ADMIN_PORT: '2', BREAKWATER_ADMIN_TOKEN: 'variable' })
    deepEqual([Object.keys(config.pools), config.shedding.maxInFlight, config.admin.port, config.admin.token], [['shop'], 2, 2, 'variable'])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
