import assert from 'node:assert/strict'
import { test } from 'node:test'
import { skipWithout } from './tools.ts'

test('a missing tool skips a test, and fails it where CI is true', () => {
  const told: (string | undefined)[] = []
  const context = { skip: (message?: string) => { told.push(message) } }
  skipWithout('anvil', context, {})
  skipWithout('anvil', context, { CI: '' })
  assert.deepEqual(told, ['there is no anvil', 'there is no anvil'])
  assert.throws(() => { skipWithout('anvil', context, { CI: 'true' }) }, /no anvil/)
  assert.equal(told.length, 2)
})
