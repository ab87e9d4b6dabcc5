import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { acceptQuality, codingQuality } from '../../../lib/http/accept.ts'

test('the quality of a type is that of the most specific range', () => {
  const table: Array<[accept: string, quality: number]> = [
    ['', 0],
    ['text/plain', 1],
    ['TEXT/Plain', 1],
    ['text/plain;q=0.5', 0.5],
    ['text/plain ; q=0.5', 0.5],
    ['text/*;q=0.5', 0.5],
    ['*/*;q=0.1', 0.1],
    ['*/*;q=0.1, text/*;q=0.2, text/plain;q=0.3', 0.3],
    ['text/plain;q=0, */*', 0],
    ['text/plain;version=0.0.4;q=0.7, text/plain;q=0.2', 0.7],
    ['text/plain;version="0.0.4";q=0.7', 0.7],
    ['text/plain;version=9', 0],
    ['text/plain;version=9, */*;q=0.1', 0.1],
    ['text/plain;q=2', 0],
    ['text/plain;q=x', 0],
    ['application/json', 0],
    [',, ;, text', 0]
  ]
  for (const [accept, quality] of table) assert.equal(acceptQuality(accept, 'text/plain', ['0.0.4']), quality, accept)
})

test('whatever a client says, a quality is from 0 to 1', () => {
  fc.assert(fc.property(fc.string(), (accept) => {
    const quality = acceptQuality(accept, 'text/plain', ['0.0.4'])
    assert.ok(quality >= 0 && quality <= 1)
  }))
})

test('a coding is wanted by its name, else by *, and nobody who says nothing wants one', () => {
  const cases: Array<[string, number]> = [
    ['', 0], ['gzip', 1], ['GZIP', 1], ['br, gzip;q=0.5', 0.5], ['*', 1], ['*;q=0.1, gzip;q=0', 0], ['gzip;q=0, *', 0], ['*;q=0', 0], ['xgzip, gzipx', 0], ['gzip;q=2', 0], ['gzip ; q=0.25', 0.25]
  ]
  for (const [accept, quality] of cases) assert.equal(codingQuality(accept, 'gzip'), quality, accept)
})
