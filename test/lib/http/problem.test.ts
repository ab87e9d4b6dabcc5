import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { failureOf, failures, type Reason } from '../../../lib/failure.ts'
import { problem, retryAfter } from '../../../lib/http/problem.ts'
import { seededRandom } from '../../../lib/random.ts'

const reasons = Object.keys(failures) as Reason[]
const documentOf = (body: Buffer) => JSON.parse(body.toString()) as Record<string, unknown>

describe('problem document', () => {
  for (const reason of reasons) {
    it(reason, () => {
      const { status, title, error } = failureOf(reason)
      const answer = problem(reason, 'id-1')
      equal(answer.status, status)
      deepEqual(documentOf(answer.body), { type: `urn:breakwater:reason:${reason}`, title, status, detail: title, reason, requestId: 'id-1' })
      deepEqual(answer.headers, { 'content-type': 'application/problem+json', 'cache-control': 'no-store', 'proxy-status': `breakwater; error=${error}; details="${reason}"` })
    })

    it(`${reason}: Retry-After ${[429, 503].includes(failureOf(reason).status) ? 'is sent' : 'is left out, since a retry would not help'}`, () => {
      equal(problem(reason, '', undefined, 7).headers['retry-after'], [429, 503].includes(failureOf(reason).status) ? '7' : undefined)
    })
  }

  it('says more where there is more to say', () => {
    const { detail, title } = documentOf(problem('breaker_open', '', 'half of the last 20 requests failed').body)
    equal(detail, 'half of the last 20 requests failed')
    equal(title, failureOf('breaker_open').title)
  })

  it('is JSON whatever stands in it', () => {
    fc.assert(fc.property(fc.constantFrom(...reasons), fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), (reason, requestId, detail) => {
      const document = documentOf(problem(reason, requestId, detail).body)
      deepEqual([document['requestId'], document['detail']], [requestId, detail])
    }))
  })

  it('has fields that may stand in a head', () => {
    for (const reason of reasons) {
      for (const [name, value] of Object.entries(problem(reason, 'x\r\ny', 'a\r\nb', 1).headers)) {
        match(name, /^[a-z-]+$/)
        match(value, /^[!-~]+(?: [!-~]+)*$/)
      }
    }
  })
})

describe('Retry-After', () => {
  const table: [number, number, number][] = [[0, 1, 2], [1, 1, 2], [1000, 1, 2], [1001, 2, 3], [5000, 5, 6], [10000, 10, 12], [60000, 60, 72], [3600000, 3600, 4320], [1e12, 3600, 4320], [Infinity, 3600, 4320], [-5, 1, 2]]
  for (const [expectedMs, least, most] of table) {
    it(`for ${expectedMs} ms: ${least} to ${most} s`, () => {
      equal(retryAfter(expectedMs, () => 0), least)
      equal(retryAfter(expectedMs, () => 1 - Number.EPSILON), most)
    })
  }

  it('is whole seconds, never before the time, at most a fifth or a second later', () => {
    fc.assert(fc.property(fc.double({ min: 0, max: 3600000, noNaN: true }), fc.integer(), (expectedMs, seed) => {
      const seconds = retryAfter(expectedMs, seededRandom(seed))
      ok(Number.isInteger(seconds) && seconds >= 1)
      ok(seconds * 1000 >= expectedMs)
      const least = Math.max(1, Math.ceil(expectedMs / 1000))
      ok(seconds <= least + Math.max(1, Math.round(least * 0.2)))
    }))
  })

  it('does not send all of the refused back at once', () => {
    const random = seededRandom(1)
    const spread = new Set(Array.from({ length: 100 }, () => retryAfter(30000, random)))
    equal(spread.size, 7)
  })
})
