import { equal } from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { parseRetryAfter } from '../../../lib/retry/retry-after.ts'

const now = Date.UTC(1994, 10, 6, 8, 49, 27)
const max = 2147483647

const table: Array<[name: string, value: string, ms: number | null]> = [
  ['2 is two seconds, not two milliseconds', '2', 2000],
  ['zero', '0', 0],
  ['leading zeros', '0010', 10000],
  ['more than a timer holds is cut', '2147484', max],
  ['digits without end are cut', '9'.repeat(400), max],
  ['a date', 'Sun, 06 Nov 1994 08:49:37 GMT', 10000],
  ['a date of RFC 850', 'Sunday, 06-Nov-94 08:49:37 GMT', 10000],
  ['a date of asctime', 'Sun Nov  6 08:49:37 1994', 10000],
  ['a date of asctime with two digits', 'Wed Nov 16 08:49:27 1994', 864000000],
  ['a date that has passed', 'Sun, 06 Nov 1994 08:49:26 GMT', 0],
  ['this very moment', 'Sun, 06 Nov 1994 08:49:27 GMT', 0],
  ['a date far ahead is cut', 'Fri, 31 Dec 9999 23:59:59 GMT', max],
  ['the first year', 'Sat, 01 Jan 0000 00:00:00 GMT', 0],
  ['a wrong day of the week is not minded', 'Mon, 06 Nov 1994 08:49:37 GMT', 10000],
  ['a leap second', 'Sun, 06 Nov 1994 08:49:60 GMT', 33000],
  ['midnight of the next day', 'Mon, 07 Nov 1994 00:00:00 GMT', 54633000],
  ['nothing', '', null],
  ['a fraction', '1.5', null],
  ['a negative number', '-5', null],
  ['a sign', '+5', null],
  ['an exponent', '1e3', null],
  ['a hexadecimal number', '0x10', null],
  ['digits of another script', '٢', null],
  ['a unit', '5s', null],
  ['two values', '5, 10', null],
  ['spaces', ' 5', null],
  ['a word', 'soon', null],
  ['a date with another zone', 'Sun, 06 Nov 1994 08:49:37 CET', null],
  ['a date with an offset', 'Sun, 06 Nov 1994 08:49:37 +0000', null],
  ['a date without a day of the week', '06 Nov 1994 08:49:37 GMT', null],
  ['an ISO date', '1994-11-06T08:49:37Z', null],
  ['a date in lower case', 'sun, 06 nov 1994 08:49:37 gmt', null],
  ['an unknown month', 'Sun, 06 Abc 1994 08:49:37 GMT', null],
  ['a day that is not', 'Wed, 31 Feb 1994 08:49:37 GMT', null],
  ['the 29th of February in a common year', 'Tue, 29 Feb 1994 08:49:37 GMT', null],
  ['the 29th of February of 1900', 'Thu, 29 Feb 1900 08:49:37 GMT', null],
  ['the 29th of February of 2000', 'Tue, 29 Feb 2000 08:49:37 GMT', max],
  ['day zero', 'Sun, 00 Nov 1994 08:49:37 GMT', null],
  ['an hour that is not', 'Sun, 06 Nov 1994 24:00:00 GMT', null],
  ['a minute that is not', 'Sun, 06 Nov 1994 08:60:00 GMT', null],
  ['a second that is not', 'Sun, 06 Nov 1994 08:49:61 GMT', null],
  ['something behind the date', 'Sun, 06 Nov 1994 08:49:37 GMT;', null],
  ['a line break behind the date', 'Sun, 06 Nov 1994 08:49:37 GMT\n', null]
]

describe('Retry-After', () => {
  for (const [name, value, ms] of table) {
    it(`${name}: ${ms === null ? 'not understood' : `${ms} ms`}`, () => equal(parseRetryAfter(value, now), ms))
  }

  it('a year of two digits is never more than fifty years ahead', () => {
    const at = Date.UTC(2026, 5, 1)
    equal(parseRetryAfter('Monday, 01-Jun-26 00:00:05 GMT', at), 5000)
    equal(parseRetryAfter('Monday, 01-Jun-76 00:00:00 GMT', at), max, '2076')
    equal(parseRetryAfter('Wednesday, 01-Jun-77 00:00:00 GMT', at), 0, '1977')
    equal(parseRetryAfter('Saturday, 01-Jan-00 00:00:05 GMT', Date.UTC(2000, 0, 1)), 5000)
    equal(parseRetryAfter('Friday, 01-Jan-00 00:00:05 GMT', Date.UTC(2099, 11, 31, 23, 59, 59)), 6000, '2100')
  })

  it('counts from the fraction of a second in which it is read', () => {
    equal(parseRetryAfter('Sun, 06 Nov 1994 08:49:37 GMT', now + 0.25), 9999.75)
  })

  const moment = fc.integer({ min: Date.UTC(1970, 0, 1) / 1000, max: Date.UTC(2400, 0, 1) / 1000 })

  it('property: every second reads as the platform writes it, in every form', () => {
    fc.assert(fc.property(moment, fc.integer({ min: 0, max: 2000000 }), (seconds, ahead) => {
      const date = new Date(seconds * 1000)
      const imf = date.toUTCString()
      const [weekday, day, month, year, time] = imf.replace(',', '').split(' ') as [string, string, string, string, string]
      const long = { Mon: 'Monday', Tue: 'Tuesday', Wed: 'Wednesday', Thu: 'Thursday', Fri: 'Friday', Sat: 'Saturday', Sun: 'Sunday' }[weekday] as string
      const at = date.getTime() - ahead * 1000
      equal(parseRetryAfter(imf, at), ahead * 1000)
      equal(parseRetryAfter(`${long}, ${day}-${month}-${year.slice(2)} ${time} GMT`, at), ahead * 1000)
      equal(parseRetryAfter(`${weekday} ${month} ${day.replace(/^0/, ' ')} ${time} ${year}`, at), ahead * 1000)
    }))
  })

  it('property: whatever comes, it is null or a time that a timer holds', () => {
    const dateLike = fc.tuple(fc.constantFrom('Sun', 'Sunday'), fc.constantFrom(', ', ' '), fc.integer({ min: 0, max: 99 }), fc.constantFrom(' Nov ', '-Feb-', ' Xxx '), fc.integer({ min: 0, max: 9999 }), fc.constantFrom(' 08:49:37 GMT', ' 99:99:99 GMT', '')).map((parts) => parts.join(''))
    fc.assert(fc.property(fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.bigInt().map(String), dateLike), fc.double({ min: 0, max: 8.64e15, noNaN: true }), (value, epochMs) => {
      const ms = parseRetryAfter(value, epochMs)
      equal(ms === null || (ms >= 0 && ms <= max), true)
    }))
  })
})
