import type { TestContext } from 'node:test'

/**
 * Skips a test whose tool this machine lacks. Where CI is "true", as in .ci/run, which installs them, it fails instead.
 * The files that may call it are named in test/architecture.test.ts.
 * @throws Error under CI
 */
export function skipWithout (tool: string, t: Pick<TestContext, 'skip'>, environment: NodeJS.ProcessEnv = process.env): void {
  if (environment['CI'] === 'true') throw new Error(`there is no ${tool}, and with CI=true no test is skipped`)
  t.skip(`there is no ${tool}`)
}
