import { cpus, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { Workshop } from '../children.ts'
import { textTable } from '../report.ts'
import { holds, type Claim, type DrillContext, type DrillReport } from './drill.ts'
import { drills, type AnyDrill } from './table.ts'

const usage = `npm run drills -- [options]
  --only A,B   only these drills: ${drills.map(({ name }) => name).join(', ')}
  --gentle     at the scale of the tests: a check that all runs
  --peers      kill and wedge also with nginx and HAProxy, where they are installed
  --seed N     of the moments of the requests and the upstreams' delays (1)
  --help`

interface Options {
  chosen: readonly AnyDrill[]
  scale: 'full' | 'gentle'
  peers: boolean
  seed: number
}

const say = (text: string): void => { process.stdout.write(`${text}\n`) }

/** @throws TypeError or RangeError on an unknown option or value; null: help was asked for */
function parseOptions (args: readonly string[]): Options | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string', default: '' },
      gentle: { type: 'boolean', default: false },
      peers: { type: 'boolean', default: false },
      seed: { type: 'string', default: '1' },
      help: { type: 'boolean', default: false }
    }
  })
  if (values.help) return null
  const seed = Number(values.seed)
  if (values.seed.trim() === '' || !Number.isInteger(seed) || seed < 0 || seed >= 2 ** 31) throw new RangeError(`--seed must be a whole number from 0 to ${2 ** 31 - 1}, not "${values.seed}"`)
  const only = values.only.split(',').map(name => name.trim()).filter(name => name !== '')
  const unknown = only.filter(name => !drills.some(drill => drill.name === name))
  if (unknown.length > 0) throw new RangeError(`--only knows ${drills.map(({ name }) => name).join(', ')}, not ${unknown.join(', ')}`)
  return { chosen: drills.filter(({ name }) => only.length === 0 || only.includes(name)), scale: values.gentle ? 'gentle' : 'full', peers: values.peers, seed }
}

/** Figures as lines, variants as columns. */
function tableOf (reports: readonly DrillReport[]): string {
  const names = [...new Set(reports.flatMap(({ figures }) => figures.map(([name]) => name)))]
  return textTable(['', ...reports.map(({ variant }) => variant)], names.map(name => [name, ...reports.map(({ figures }) => String(figures.find(([each]) => each === name)?.[1] ?? ''))]))
}

const round = (value: number): string => String(Math.round(value * 100) / 100)

function printClaims (reports: readonly DrillReport[]): string {
  const lines = reports.flatMap(({ variant, claims }) => claims.map((claim): [string, string, string, string] =>
    [`${variant}: ${claim.what}`, round(claim.atMost), round(claim.is), holds(claim) ? 'holds' : `FAILS (${claim.kind})`]))
  return textTable(['expected', 'at most', 'is', ''], lines)
}

async function play (workshop: Workshop, { chosen, scale, peers, seed }: Options): Promise<void> {
  say(`machine: ${cpus()[0]?.model.trim() ?? 'unknown'}, ${cpus().length} cores, node ${process.versions.node}; scale ${scale}, seed ${seed}`)
  const load1 = loadavg()[0] ?? 0
  if (load1 > 0.5) say(`note: the load average is ${load1.toFixed(1)} before the run: other work here makes the times worse`)
  const context: DrillContext = { workshop, seed, peers, say }
  const failed: Claim[] = []
  for (const drill of chosen) {
    say(`\n== ${drill.name}: ${drill.title}`)
    const reports = await drill.play(scale, context)
    say(`${tableOf(reports)}\n\n${printClaims(reports)}`)
    failed.push(...reports.flatMap(({ claims }) => claims.filter(claim => !holds(claim) && claim.kind === 'outcome')))
  }
  if (failed.length > 0) process.exitCode = 1
}

let options: Options | null = null
try {
  options = parseOptions(process.argv.slice(2))
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n\n${usage}\n`)
  process.exit(2)
}
if (options === null) {
  say(usage)
} else {
  const workshop = new Workshop()
  // The last resort: whatever way this process ends, nothing that it started stays behind.
  process.once('exit', () => workshop.kill())
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => { void workshop.close().then(() => process.exit(130)) })
  }
  try {
    await play(workshop, options)
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
    process.exitCode = 1
  } finally {
    await workshop.close()
  }
}
