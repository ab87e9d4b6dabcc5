import { parseArgs } from 'node:util'
import { scenarios, type Scenario, type ScenarioName } from './scenarios.ts'

export interface BenchOptions {
  rounds: number
  /** Seconds of load a peer and round. */
  seconds: number
  /** Seconds of load a peer before the first round. */
  warmup: number
  connections: number
  upstreams: number
  scenario: ScenarioName
  /** Names of peers; empty: all. */
  only: string[]
  /** File for the figures as JSON; null: none. */
  json: string | null
}

export const usage = `npm run bench -- [options]
  --rounds N        rounds of each peer (5)
  --seconds S       seconds of load a round (3)
  --warmup S        seconds of load before the first round (4)
  --connections N   keep-alive connections, each with one request at a time (16; 4 for download and upload)
  --upstreams N     ports of the upstream that every peer spreads its requests over (2)
  --scenario NAME   ${Object.keys(scenarios).join(' | ')} (get)
  --only A,B        only these peers
  --quick           2 rounds of 1 second, warm-up 1 second: a check that all runs, no figure to quote
  --json FILE       also write every round as JSON
  --help`

const number = (name: string, text: string | undefined, otherwise: number, least: number, most: number, whole = true): number => {
  if (text === undefined) return otherwise
  const value = Number(text)
  if (text.trim() === '' || !(value >= least && value <= most) || (whole && !Number.isInteger(value))) {
    throw new RangeError(`--${name} must be ${whole ? 'a whole number' : 'a number'} from ${least} to ${most}, not "${text}"`)
  }
  return value
}

const isScenario = (name: string): name is ScenarioName => Object.hasOwn(scenarios, name)

/**
 * The options of one run; null when help was asked for.
 * @throws TypeError or RangeError on an unknown option or a value outside its bounds; the message names it.
 */
export function parseOptions (args: readonly string[]): BenchOptions | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      warmup: { type: 'string' },
      connections: { type: 'string' },
      upstreams: { type: 'string' },
      scenario: { type: 'string', default: 'get' },
      only: { type: 'string', default: '' },
      quick: { type: 'boolean', default: false },
      json: { type: 'string' },
      help: { type: 'boolean', default: false }
    }
  })
  if (values.help) return null
  if (!isScenario(values.scenario)) throw new RangeError(`--scenario must be one of ${Object.keys(scenarios).join(', ')}, not "${values.scenario}"`)
  const scenario: Scenario = scenarios[values.scenario]
  return {
    rounds: number('rounds', values.rounds, values.quick ? 2 : 5, 1, 100),
    seconds: number('seconds', values.seconds, values.quick ? 1 : 3, 0.1, 60, false),
    warmup: number('warmup', values.warmup, values.quick ? 1 : 4, 0.1, 60, false),
    connections: number('connections', values.connections, scenario.connections ?? 16, 1, 1024),
    upstreams: number('upstreams', values.upstreams, 2, 1, 16),
    scenario: values.scenario,
    only: values.only.split(',').map(name => name.trim()).filter(name => name !== ''),
    json: values.json ?? null
  }
}
