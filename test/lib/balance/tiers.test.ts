import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { tierLoads } from '../../../lib/balance/tiers.ts'

/** [usable, standing] of each tier -> loads in per cent, rounded, and the capacity. */
const rows: Array<[title: string, tiers: Array<[usable: number, standing: number]>, loads: number[], capacity: number]> = [
  ['one whole tier', [[3, 3]], [100], 1],
  ['a tier that is not whole carries all of it up to 1.4 times its share', [[5, 7]], [100], 1],
  ['below that it carries what there is', [[1, 2]], [100], 0.7],
  ['the next tier takes the rest', [[1, 2], [2, 2]], [70, 30], 1],
  ['and nothing while the first one can do it', [[3, 4], [4, 4]], [100, 0], 1],
  ['a first tier that is gone leaves all to the next one', [[0, 3], [2, 2]], [0, 100], 1],
  ['two weak tiers share by what they can', [[1, 4], [1, 4]], [50, 50], 0.7],
  ['three tiers in their order (Envoy: 100 = 35 + 35 + 30)', [[1, 4], [1, 4], [4, 4]], [35, 35, 30], 1],
  ['nobody at all', [[0, 2], [0, 1]], [0, 0], 0],
  ['an empty tier is nobody', [[0, 0], [1, 1]], [0, 100], 1]
]

const counts = (tiers: ReadonlyArray<readonly [number, number]>) => tiers.map(([usable, standing]) => ({ usable, standing }))

describe('the traffic by tier', () => {
  for (const [title, tiers, loads, capacity] of rows) {
    it(title, () => {
      const result = tierLoads(counts(tiers), 1.4)
      deepEqual(result.loads.map((load) => Math.round(100 * load)), loads)
      equal(Math.round(100 * result.capacity) / 100, capacity)
    })
  }

  it('adds up to all of it wherever anybody is usable, and gives nobody less than nothing', () => {
    const tier = fc.integer({ min: 0, max: 9 }).chain((standing) => fc.tuple(fc.integer({ min: 0, max: standing }), fc.constant(standing)))
    fc.assert(fc.property(fc.array(tier, { minLength: 1, maxLength: 5 }), fc.double({ min: 1, max: 10, noNaN: true }), (tiers, spillOver) => {
      const { loads, capacity } = tierLoads(counts(tiers), spillOver)
      const sum = loads.reduce((total, load) => total + load, 0)
      const anybody = tiers.some(([usable]) => usable > 0)
      ok(Math.abs(sum - Number(anybody)) < 1e-9, `${sum}`)
      ok(loads.every((load) => load >= 0))
      equal(capacity > 0, anybody)
      for (const [index, [usable]] of tiers.entries()) if (usable === 0) ok((loads[index] as number) < 1e-9)
    }))
  })
})
