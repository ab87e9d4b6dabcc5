/** `npm run fuzz`: all campaigns in turn, for as long as was asked for. */
import { parseArgs } from 'node:util'
import { campaigns, fuzz } from './fuzz.ts'

const usage = `npm run fuzz -- [options]
  --only A,B   only these campaigns: ${campaigns.map(({ name }) => name).join(', ')}
  --seed N     of all that is drawn (1)
  --minutes M  how long, all campaigns together (1)
  --step N     only this step of each: what a fault told of
  --help`

const say = (text: string): void => { process.stdout.write(`${text}\n`) }

function number (text: string, name: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value) || value < 0) throw new RangeError(`--${name} must be a number, not "${text}"`)
  return value
}

async function main (): Promise<void> {
  const { values } = parseArgs({
    options: { only: { type: 'string', default: '' }, seed: { type: 'string', default: '1' }, minutes: { type: 'string', default: '1' }, step: { type: 'string' }, help: { type: 'boolean', default: false } }
  })
  if (values.help) return say(usage)
  const only = values.only.split(',').map((name) => name.trim()).filter((name) => name !== '')
  const unknown = only.filter((name) => !campaigns.some((campaign) => campaign.name === name))
  if (unknown.length > 0) throw new RangeError(`--only knows ${campaigns.map(({ name }) => name).join(', ')}, not ${unknown.join(', ')}`)
  const chosen = campaigns.filter(({ name }) => only.length === 0 || only.includes(name))
  const seed = number(values.seed, 'seed')
  const ms = number(values.minutes, 'minutes') * 60_000 / chosen.length
  const single = values.step === undefined ? null : number(values.step, 'step')
  for (const campaign of chosen) {
    const { steps, faults } = await fuzz(campaign, {
      seed, lanes: 12, until: performance.now() + ms, from: single ?? 0, to: single === null ? Infinity : single + 1
    })
    say(`${campaign.name}: ${steps} steps, ${faults.length} faults`)
    for (const fault of faults) say(`  ${fault.replaceAll('\n', '\n    ')}`)
    if (faults.length > 0) process.exitCode = 1
  }
}

main().catch((error: unknown) => {
  if (error instanceof TypeError || error instanceof RangeError) process.stderr.write(`${error.message}\n${usage}\n`)
  else process.stderr.write(`${(error as Error).stack ?? String(error)}\n`)
  process.exitCode = 1
})
