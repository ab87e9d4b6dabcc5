import type { Round } from './measure.ts'
import { median, pairedRatios, spread, type Spread } from './stats.ts'

/** All rounds of one peer. */
export interface PeerRounds {
  name: string
  features: string
  version: string
  rounds: Round[]
  /** Peak resident memory, in KiB. */
  peakKib: number
}

/** One line of the result table. */
export interface Row {
  name: string
  features: string
  version: string
  validRounds: number
  rounds: number
  cpuMicros: Spread
  /** Our CPU over theirs, round by round; NaN without our own figure. */
  ratio: Spread
  busy: number
  requestsPerSecond: number
  p50: number
  p99: number
  peakKib: number
  /** Each invalid round's reason. */
  faults: string[]
}

export interface TargetResult {
  /** Which of ours is held against the peer. */
  ours: string
  peer: string
  atMost: number
  ratio: number
  /** `unknown`: one of the two was not measured. */
  verdict: 'reached' | 'not reached' | 'unknown'
}

const cpuOf = ({ rounds }: PeerRounds): number[] => rounds.map(round => round.invalid === null ? round.cpuMicros : NaN)

/** The peers' medians, and their ratios to `reference` (a peer's name). */
export function summarize (measured: readonly PeerRounds[], reference: string): Row[] {
  const ours = measured.find(peer => peer.name === reference)
  return measured.map(peer => {
    const valid = peer.rounds.filter(round => round.invalid === null)
    return {
      name: peer.name,
      features: peer.features,
      version: peer.version,
      validRounds: valid.length,
      rounds: peer.rounds.length,
      cpuMicros: spread(valid.map(round => round.cpuMicros)),
      ratio: spread(ours === undefined ? [] : pairedRatios(cpuOf(ours), cpuOf(peer))),
      busy: median(valid.map(round => round.busy)),
      requestsPerSecond: median(valid.map(round => round.requestsPerSecond)),
      p50: median(valid.map(round => round.p50)),
      p99: median(valid.map(round => round.p99)),
      peakKib: peer.peakKib,
      faults: peer.rounds.flatMap(({ invalid }, i) => invalid === null ? [] : [`round ${i + 1}: ${invalid}`])
    }
  })
}

/** Where each target of `ours` stands; `rows` have the ratios to it. The ratio is compared as measured, not as printed. */
export function judge (rows: readonly Row[], ours: string, targets: ReadonlyMap<string, number>): TargetResult[] {
  return [...targets].map(([peer, atMost]) => {
    const ratio = rows.find(row => row.name === peer)?.ratio.median ?? NaN
    return { ours, peer, atMost, ratio, verdict: Number.isNaN(ratio) ? 'unknown' : ratio <= atMost ? 'reached' : 'not reached' }
  })
}

/** A number for people; `-` where there is none. */
export const figure = (value: number, digits: number): string => Number.isFinite(value) ? value.toFixed(digits) : '-'

const range = ({ min, max }: Spread, digits: number): string => Number.isFinite(min) ? `${min.toFixed(digits)}-${max.toFixed(digits)}` : '-'

/** Plain text columns; the first to the left, the others to the right. */
export function textTable (header: readonly string[], lines: readonly (readonly string[])[]): string {
  const all = [header, ...lines]
  const widths = header.map((_, column) => Math.max(...all.map(line => (line[column] ?? '').length)))
  return all.map(line => line.map((cell, column) => column === 0 ? cell.padEnd(widths[column] as number) : cell.padStart(widths[column] as number)).join('  ').trimEnd()).join('\n')
}

/** The result table, the invalid rounds and the legend. */
export function printRows (rows: readonly Row[]): string {
  const table = textTable(
    ['peer', 'CPU µs/req', 'min-max', 'ours/theirs', 'min-max', 'core busy', 'req/s', 'p50 ms', 'p99 ms', 'peak MiB'],
    rows.map(row => [
      row.name + (row.faults.length === 0 ? '' : ` (${row.validRounds}/${row.rounds} valid)`),
      figure(row.cpuMicros.median, 1), range(row.cpuMicros, 1), figure(row.ratio.median, 2), range(row.ratio, 2),
      `${figure(row.busy * 100, 0)} %`, figure(row.requestsPerSecond, 0), figure(row.p50, 2), figure(row.p99, 2), figure(row.peakKib / 1024, 0)
    ])
  )
  const faults = rows.flatMap(row => row.faults.map(fault => `INVALID ${row.name} ${fault}`))
  const legend = rows.map(row => `  ${row.name}: ${row.version}; ${row.features}`)
  return [table, ...faults, '', 'what each is', ...legend].join('\n')
}

/** What the bytes cost, where a request is little beside them: `bytes` a request. */
export const printBytes = (rows: readonly Row[], bytes: number): string => textTable(
  ['peer', 'CPU ms/GiB', 'min-max', 'MiB/s'],
  rows.map(row => {
    const perGib = (micros: number): number => micros / 1000 * 2 ** 30 / bytes
    const { median: middle, min, max } = row.cpuMicros
    return [row.name, figure(perGib(middle), 0), range({ median: perGib(middle), min: perGib(min), max: perGib(max) }, 0), figure(row.requestsPerSecond * bytes / 2 ** 20, 0)]
  })
)

/** The targets with where each stands. */
export const printTargets = (results: readonly TargetResult[]): string => textTable(
  ['target: our CPU a request / the peer\'s', 'at most', 'is', ''],
  results.map(({ ours, peer, atMost, ratio, verdict }) => [`${ours} / ${peer}`, figure(atMost, 2), figure(ratio, 2), verdict])
)
