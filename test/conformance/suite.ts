/** What all suites of conformance share: cases that pass, that are explained, or that fail. */
import { spawnSync } from 'node:child_process'

export interface SuiteOptions {
  /** Of what is drawn at random. */
  seed: number
  /** How many cases a suite draws; null: its own number. */
  count: number | null
}

export interface Suite {
  readonly name: string
  readonly about: string
  /** Programs that it cannot do without. */
  readonly needs: readonly string[]
  /** Whether `npm test` runs it, too. */
  readonly quick: boolean
  run (report: Report, options: SuiteOptions): Promise<void>
}

export const defaults: SuiteOptions = { seed: 1, count: null }

/** Collects what became of the cases of one suite, and of what they opened. */
export class Report {
  readonly failures: Array<{ name: string, what: string }> = []
  /** Cases that differ from what was looked for, each with the name of the reason why that is right. */
  readonly explained: Array<{ name: string, why: string }> = []
  passed = 0
  readonly #cleanups: Array<() => unknown> = []

  get cases (): number { return this.passed + this.explained.length + this.failures.length }

  pass (): void { this.passed++ }

  explain (name: string, why: string): void { this.explained.push({ name, why }) }

  fail (name: string, what: string): void { this.failures.push({ name, what }) }

  /** One case: it passes unless it throws; what it returns explains it. */
  async check (name: string, run: () => unknown): Promise<void> {
    try {
      const why = await run()
      if (typeof why === 'string') this.explain(name, why)
      else this.pass()
    } catch (error) {
      this.fail(name, error instanceof Error ? error.message : String(error))
    }
  }

  /** As of a test: what is to be done at the end, the last one first. */
  after (cleanup: () => unknown): void { this.#cleanups.push(cleanup) }

  async close (): Promise<void> {
    for (let cleanup = this.#cleanups.pop(); cleanup !== undefined; cleanup = this.#cleanups.pop()) await cleanup()
  }

  /** How often each reason explained a case. */
  reasons (): Map<string, number> {
    const counts = new Map<string, number>()
    for (const { why } of this.explained) counts.set(why, (counts.get(why) ?? 0) + 1)
    return counts
  }
}

/** The first of the programs that is not there. */
export function missing (programs: readonly string[]): string | undefined {
  return programs.find((program) => {
    const { error } = spawnSync(program, ['--version'], { timeout: 10_000, stdio: 'ignore' })
    return (error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT'
  })
}

/** Runs a suite whole, and closes what it opened. What the suite itself throws is a failure, too. */
export async function play (suite: Suite, options: SuiteOptions = defaults): Promise<Report> {
  const report = new Report()
  try {
    await suite.run(report, options)
  } catch (error) {
    report.fail('the suite itself', error instanceof Error ? error.stack ?? error.message : String(error))
  } finally {
    await report.close()
  }
  return report
}
