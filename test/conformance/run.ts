/** `npm run conformance`: every suite, and a table of what became of it. */
import { parseArgs } from 'node:util'
import { textTable } from '../../bench/report.ts'
import { missing, play, type Report, type Suite } from './suite.ts'
import { suites } from './table.ts'

const usage = `npm run conformance -- [options]
  --only A,B   only these suites: ${suites.map(({ name }) => name).join(', ')}
  --seed N     of what is drawn at random (1)
  --count N    how many cases a suite draws
  --help`

const say = (text: string): void => { process.stdout.write(`${text}\n`) }

function whole (text: string, name: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isInteger(value) || value < 0) throw new RangeError(`--${name} must be a whole number, not "${text}"`)
  return value
}

function row (suite: Suite, report: Report | string): string[] {
  if (typeof report === 'string') return [suite.name, '', '', '', report]
  return [suite.name, String(report.cases), String(report.passed), String(report.explained.length), report.failures.length === 0 ? '' : `${report.failures.length} FAILED`]
}

async function main (): Promise<void> {
  const { values } = parseArgs({
    options: { only: { type: 'string', default: '' }, seed: { type: 'string', default: '1' }, count: { type: 'string' }, help: { type: 'boolean', default: false } }
  })
  if (values.help) return say(usage)
  const only = values.only.split(',').map((name) => name.trim()).filter((name) => name !== '')
  const unknown = only.filter((name) => !suites.some((suite) => suite.name === name))
  if (unknown.length > 0) throw new RangeError(`--only knows ${suites.map(({ name }) => name).join(', ')}, not ${unknown.join(', ')}`)
  const options = { seed: whole(values.seed, 'seed'), count: values.count === undefined ? null : whole(values.count, 'count') }

  const rows: string[][] = []
  for (const suite of suites.filter(({ name }) => only.length === 0 || only.includes(name))) {
    const lacking = missing(suite.needs)
    if (lacking !== undefined) {
      rows.push(row(suite, `not run: there is no ${lacking}`))
      continue
    }
    const report = await play(suite, options)
    for (const { name, what } of report.failures) say(`${suite.name}: ${name}\n  ${what.replaceAll('\n', '\n  ')}`)
    for (const [why, times] of report.reasons()) say(`${suite.name}: ${times} explained by "${why}"`)
    if (report.failures.length > 0) process.exitCode = 1
    rows.push(row(suite, report))
  }
  say(`\n${textTable(['suite', 'cases', 'passed', 'explained', ''], rows)}`)
}

main().catch((error: unknown) => {
  if (error instanceof TypeError || error instanceof RangeError) process.stderr.write(`${error.message}\n${usage}\n`)
  else process.stderr.write(`${(error as Error).stack ?? String(error)}\n`)
  process.exitCode = 1
})
