import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keptRequestFields, maxRequestFields, mayHaveLostFields } from '../../../lib/http/field-limit.ts'

test('a head is whole as long as Node had room for one field more', () => {
  for (const [fields, kept, lost] of [
    [0, keptRequestFields, false], [maxRequestFields, keptRequestFields, false], [maxRequestFields + 1, keptRequestFields, true], [5000, keptRequestFields, true],
    [999, null, false], [1000, null, true], [49, 50, false], [50, 50, true], [100000, 0, false], [100000, undefined, false]
  ] as const) assert.equal(mayHaveLostFields(2 * fields, kept), lost, `${fields} fields, ${kept} kept`)
})
