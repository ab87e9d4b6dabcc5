import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Workshop } from '../../../bench/children.ts'
import { holds } from '../../../bench/drills/drill.ts'
import { drills } from '../../../bench/drills/table.ts'

/**
 * Tests that play these drills of docs/drills.md at their small scale, and compare what they lose and deliver with what the
 * configuration promises; never how fast.
 * @param titles what each of them says, by its name
 */
export function playDrills (titles: Readonly<Record<string, string>>): void {
  const workshop = new Workshop()
  after(() => workshop.close())
  for (const [name, title] of Object.entries(titles)) {
    test(title, async () => {
      const drill = drills.find(each => each.name === name)
      assert.ok(drill !== undefined, name)
      const reports = await drill.play('gentle', { workshop, seed: 1, peers: false, say: () => {} })
      assert.ok(reports.length > 0)
      for (const { variant, figures, claims } of reports) {
        const outcomes = claims.filter(({ kind }) => kind === 'outcome')
        assert.ok(outcomes.length > 0)
        for (const claim of outcomes) assert.ok(holds(claim), `${variant}: ${claim.what}: ${claim.is}, at most ${claim.atMost}; ${JSON.stringify(figures)}`)
      }
    })
  }
}
