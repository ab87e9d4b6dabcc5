import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { expiryOf } from '../../../plugins/listener/expiry.ts'

const notAfter = '2026-06-15T12:00:00.000Z'
const table: [string, 'expired' | 'soon' | null][] = [
  ['2026-01-01T00:00:00Z', null], ['2026-06-01T11:59:59Z', null], ['2026-06-01T12:00:00Z', 'soon'], ['2026-06-15T11:59:59Z', 'soon'],
  ['2026-06-15T12:00:00Z', 'expired'], ['2030-01-01T00:00:00Z', 'expired']
]

test('people are told of a certificate from fourteen days before it expires', () => {
  for (const [now, expected] of table) equal(expiryOf(notAfter, Date.parse(now)), expected, now)
})
