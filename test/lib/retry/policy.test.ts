import { deepEqual, equal, notEqual } from 'node:assert/strict'
import { METHODS } from 'node:http'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { failureOf, failures, type Reason, type Retry } from '../../../lib/failure.ts'
import { leastUsefulMs, mayRepeat, whyNoRetry, type BodyState, type NoRetry, type RetryFacts } from '../../../lib/retry/policy.ts'

/** A GET that failed at its first upstream, where one retry is configured: it is retried. */
const facts = (change: Partial<RetryFacts> = {}): RetryFacts => ({
  retries: 1, attempts: 1, answerBegun: false, clientGone: false, retry: 'replayable', written: true, repeatable: true, bodyState: 'none',
  msLeft: Number.POSITIVE_INFINITY, waitMs: 0, retryAfterMs: null, maxRetryAfterMs: 1000, ...change
})

describe('methods', () => {
  const once = ['CONNECT', 'LOCK', 'M-SEARCH', 'NOTIFY', 'PATCH', 'POST', 'PURGE', 'SOURCE', 'SUBSCRIBE', 'TRACE', 'UNSUBSCRIBE']

  for (const method of new Set([...METHODS, 'QUERY'])) {
    const repeatable = !once.includes(method)
    it(`${method} is ${repeatable ? '' : 'not '}repeated`, () => {
      equal(mayRepeat(method, false, false), repeatable)
      equal(mayRepeat(method, true, false), repeatable, 'a key alone changes nothing')
      equal(mayRepeat(method, false, true), repeatable, 'nor does the option without a key')
      equal(mayRepeat(method, true, true), true)
    })
  }

  it('an unknown method, or one in lower case, is not repeated', () => {
    for (const method of ['get', 'FROB', '', 'constructor', '__proto__']) equal(mayRepeat(method, false, true), false)
  })
})

const bodies: BodyState[] = ['none', 'whole', 'untouched', 'touched']

/** What is retried, written out: each kind of failure with what was written, and the bodies with which it is for GET and for POST. */
const expected: Array<[retry: Retry, written: boolean, get: BodyState[], post: BodyState[]]> = [
  ['never', false, [], []],
  ['never', true, [], []],
  ['unsent', false, ['none', 'whole', 'untouched'], ['none', 'whole', 'untouched']],
  ['unsent', true, [], []],
  ['replayable', false, ['none', 'whole', 'untouched'], ['none', 'whole', 'untouched']],
  ['replayable', true, ['none', 'whole'], []]
]

describe('every reason with every method and body', () => {
  const kinds: Array<[name: string, retry: Retry]> = [
    ...Object.keys(failures).map((reason): [string, Retry] => [reason, failureOf(reason as Reason).retry]),
    ['a status that is retried', 'replayable']
  ]
  for (const [name, retry] of kinds) {
    it(`${name} is retried only where that is safe`, () => {
      for (const written of [false, true]) {
        const [,, get, post] = expected.find((row) => row[0] === retry && row[1] === written)!
        for (const method of METHODS) {
          const repeatable = mayRepeat(method, false, false)
          for (const bodyState of bodies) {
            const why = whyNoRetry(facts({ retry, written, repeatable, bodyState }))
            equal(why === null, (repeatable ? get : post).includes(bodyState), `${method}, body ${bodyState}, ${written ? 'written' : 'unsent'}: ${why}`)
          }
        }
      }
    })
  }

  it('those that can be retried are these', () => {
    const retried = Object.keys(failures).filter((reason) => failureOf(reason as Reason).retry !== 'never')
    deepEqual(retried, ['upstream_capacity', 'connect_refused', 'connect_timeout', 'dns_failed', 'tls_failed', 'connection_reset', 'headers_timeout', 'response_invalid'])
  })
})

const table: Array<[name: string, change: Partial<RetryFacts>, why: NoRetry | null]> = [
  ['a GET that failed is retried', {}, null],
  ['without retries, it is not', { retries: 0 }, 'off'],
  ['the first attempt of one without retries is its last', { retries: 0, attempts: 1 }, 'off'],
  ['the second of two attempts is the last', { attempts: 2 }, 'limit'],
  ['the second of three attempts is not', { retries: 2, attempts: 2 }, null],
  ['five retries make six attempts', { retries: 5, attempts: 6 }, 'limit'],
  ['a retry count that was lowered by a reload meanwhile', { retries: 1, attempts: 4 }, 'limit'],
  ['an answer that has begun', { answerBegun: true }, 'begun'],
  ['a client that left', { clientGone: true }, 'client'],
  ['a deadline that is exceeded', { retry: 'never' }, 'failure'],
  ['a POST that was sent and timed out', { repeatable: false, bodyState: 'whole' }, 'method'],
  ['a POST whose connection was refused, body kept', { repeatable: false, retry: 'unsent', written: false, bodyState: 'whole' }, null],
  ['a POST whose connection was refused, body not yet read', { repeatable: false, retry: 'unsent', written: false, bodyState: 'untouched' }, null],
  ['a POST whose connection was refused, body partly read', { repeatable: false, retry: 'unsent', written: false, bodyState: 'touched' }, 'body'],
  ['a PUT that streams and was sent', { bodyState: 'touched' }, 'body'],
  ['a PUT whose head was sent', { bodyState: 'untouched' }, 'body'],
  ['a Retry-After within the limit', { retryAfterMs: 1000, waitMs: 1000 }, null],
  ['a Retry-After beyond it', { retryAfterMs: 2000, waitMs: 2000 }, 'retry_after'],
  ['a Retry-After of nothing, where nothing is waited for', { retryAfterMs: 0, maxRetryAfterMs: 0 }, null],
  ['a Retry-After of a second, where nothing is waited for', { retryAfterMs: 1000, maxRetryAfterMs: 0, waitMs: 1000 }, 'retry_after'],
  ['a Retry-After beyond the limit and the time', { retryAfterMs: 60000, waitMs: 60000, msLeft: 500 }, 'retry_after'],
  ['a wait that uses up the time', { waitMs: 500, msLeft: 500 }, 'deadline'],
  ['a wait that leaves too little', { waitMs: 500, msLeft: 500 + leastUsefulMs }, 'deadline'],
  ['a wait that leaves just enough', { waitMs: 500, msLeft: 500.5 + leastUsefulMs }, null],
  ['no wait and no time', { msLeft: 0 }, 'deadline'],
  ['a deadline that has passed', { msLeft: -20 }, 'deadline'],
  ['a time that is no number', { waitMs: Number.NaN }, 'deadline']
]

describe('why there is no retry', () => {
  for (const [name, change, why] of table) it(`${name}: ${why ?? 'retried'}`, () => equal(whyNoRetry(facts(change)), why))

  /** Each with what makes it so. In this order the first is told, for the caller reads it as the cause. */
  const causes: Array<[NoRetry, Partial<RetryFacts>]> = [
    ['off', { retries: 0 }],
    ['begun', { answerBegun: true }],
    ['client', { clientGone: true }],
    ['failure', { retry: 'never' }],
    ['method', { repeatable: false }],
    ['body', { bodyState: 'touched' }],
    ['limit', { attempts: 6 }],
    ['retry_after', { retryAfterMs: 5000 }],
    ['deadline', { msLeft: 0 }]
  ]

  it('of several causes the first is told', () => {
    causes.forEach(([why], at) => {
      const all = Object.assign(facts(), ...causes.slice(at).map(([, change]) => change)) as RetryFacts
      equal(whyNoRetry(all), why)
    })
  })
})

describe('property: a retry', () => {
  const any = fc.record({
    retries: fc.integer({ min: 0, max: 5 }),
    attempts: fc.integer({ min: 1, max: 7 }),
    answerBegun: fc.boolean(),
    clientGone: fc.boolean(),
    retry: fc.constantFrom<Retry>('never', 'unsent', 'replayable'),
    written: fc.boolean(),
    repeatable: fc.boolean(),
    bodyState: fc.constantFrom(...bodies),
    msLeft: fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.integer({ min: -10, max: 100 })),
    waitMs: fc.integer({ min: 0, max: 100 }),
    retryAfterMs: fc.option(fc.integer({ min: 0, max: 100 })),
    maxRetryAfterMs: fc.integer({ min: 0, max: 100 })
  })

  it('never sends twice what may be sent once only, nor a part of a body, nor after an answer', () => {
    fc.assert(fc.property(any, (given) => {
      if (whyNoRetry(given) !== null) return
      equal(given.answerBegun || given.clientGone || given.bodyState === 'touched', false)
      equal(given.written && (!given.repeatable || given.bodyState === 'untouched'), false)
      equal(given.attempts <= given.retries && given.waitMs < given.msLeft, true)
    }), { numRuns: 2000 })
  })

  it('changes none of its facts, and knows nothing of the budget and other upstreams', () => {
    fc.assert(fc.property(any, (given) => {
      const why = whyNoRetry(Object.freeze(given))
      notEqual(why, 'budget')
      notEqual(why, 'no_upstream')
    }))
  })
})
