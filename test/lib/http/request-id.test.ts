import { equal } from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { it } from 'node:test'
import { isRequestId } from '../../../lib/http/request-id.ts'

it('takes over 1 to 128 of A-Z a-z 0-9 . _ : -', () => {
  for (const id of ['a', '0', 'AZaz09._:-', 'x'.repeat(128), randomUUID()]) equal(isRequestId(id), true, id)
})

it('takes over nothing else', () => {
  for (const id of ['', 'x'.repeat(129), 'a b', 'a\n', '\na', 'a/b', 'a,b', '"', '<script>', 'a\u0000', 'caf\u00e9', 'a%41', undefined, null, 7, ['a'], {}]) equal(isRequestId(id), false, JSON.stringify(id))
})
