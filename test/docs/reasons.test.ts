import { deepEqual, ok } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { failures } from '../../lib/failure.ts'
import { shipped } from '../config/support.ts'

const page = readFileSync(shipped('docs/reasons.md'), 'utf8')
const rows = page.split('\n').filter((line) => line.startsWith('| `')).map((line) => line.slice(2, -2).split(' | '))
const bare = (cell: string | undefined): string => (cell ?? '').replaceAll('`', '')

test('docs/reasons.md has every reason once, as lib/failure.ts has it', () => {
  deepEqual(
    rows.map(([reason, status, side, stage, blame, retry, error]) => [bare(reason), Number(status), side, stage, blame, retry, bare(error)]),
    Object.entries(failures).map(([reason, { status, side, stage, blames, retry, error }]) => [reason, status, side, stage, blames ? 'yes' : 'no', retry, error])
  )
})

test('docs/reasons.md says what to do about each', () => {
  for (const [reason, ...cells] of rows) ok(cells.length === 7 && cells[6]!.length > 20, `${reason} has no advice`)
})

test('docs/reasons.md names only options that there are', () => {
  const options = readFileSync(shipped('docs/options.md'), 'utf8')
  for (const [, name] of page.matchAll(/`((?:server|shedding|timeouts|connections|tls)\.[A-Za-z.]+|max[A-Za-z]+)`/g)) {
    ok(options.includes(`${name}\``) || options.includes(`\`${name}`) || options.includes(`.${name}\``), `there is no option ${name}`)
  }
})
