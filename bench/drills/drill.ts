import type { Workshop } from '../children.ts'

export interface DrillContext {
  workshop: Workshop
  seed: number
  /** Other proxies that take part, where a drill has a place for them. */
  peers: boolean
  say: (text: string) => void
}

/** What the configuration promises, beside what was measured. */
export interface Claim {
  what: string
  is: number
  atMost: number
  /** An `outcome` holds on any machine, a `speed` only where nothing else runs. */
  kind: 'outcome' | 'speed'
}

/** One variant of a drill. */
export interface DrillReport {
  variant: string
  figures: ReadonlyArray<readonly [name: string, value: string | number]>
  claims: readonly Claim[]
}

/** A failure that is made on purpose, under load. */
export interface Drill<Scale = unknown> {
  name: string
  title: string
  /** The scale of `npm run drills`. */
  full: Scale
  /** The scale of the tests: short, and slow enough for a machine that does other things as well. */
  gentle: Scale
  run: (context: DrillContext, scale: Scale) => Promise<DrillReport[]>
}

export const holds = ({ is, atMost }: Claim): boolean => is <= atMost

export const outcome = (what: string, is: number, atMost: number): Claim => ({ what, is, atMost, kind: 'outcome' })
export const speed = (what: string, is: number, atMost: number): Claim => ({ what, is, atMost, kind: 'speed' })
