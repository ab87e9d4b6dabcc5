/** Reads an HTTP-date by arithmetic: `Date` takes far more forms than HTTP has, and differs between platforms in what it takes. */

/** The longest delay of a timer, in ms. */
const maxMs = 2147483647
const dayMs = 86400000
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const monthDays = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

const time = '(\\d\\d):(\\d\\d):(\\d\\d)'
const imf = new RegExp(`^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (\\d\\d) ([A-Z][a-z]{2}) (\\d{4}) ${time} GMT$`)
const rfc850 = new RegExp(`^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (\\d\\d)-([A-Z][a-z]{2})-(\\d\\d) ${time} GMT$`)
const asctime = new RegExp(`^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ([A-Z][a-z]{2}) ([ \\d]\\d) ${time} (\\d{4})$`)

/**
 * How long a Retry-After field asks to wait, in whole or broken milliseconds, 0 .. 2^31-1; more is cut to that. Either whole
 * seconds, or an HTTP-date in one of its three forms (RFC 9110, 5.6.7 and 10.2.3), where one that has passed is 0. Null: neither.
 * @param epochMs the wall clock's now, in ms since 1970
 */
export function parseRetryAfter (value: string, epochMs: number): number | null {
  if (/^\d+$/.test(value)) return Math.min(Number(value) * 1000, maxMs)
  const at = parseHttpDate(value, epochMs)
  return at === null ? null : Math.min(Math.max(at - epochMs, 0), maxMs)
}

function parseHttpDate (value: string, epochMs: number): number | null {
  let match = imf.exec(value)
  if (match !== null) return epochOf(Number(match[3]), match[2]!, match[1]!, match[4]!, match[5]!, match[6]!)
  match = rfc850.exec(value)
  if (match !== null) return epochOf(fullYear(Number(match[3]), epochMs), match[2]!, match[1]!, match[4]!, match[5]!, match[6]!)
  match = asctime.exec(value)
  if (match !== null) return epochOf(Number(match[6]), match[1]!, match[2]!, match[3]!, match[4]!, match[5]!)
  return null
}

/** Of the years that end in these two digits, the last one that is not more than 50 years ahead. */
function fullYear (twoDigits: number, epochMs: number): number {
  const latest = 1970 + Math.floor(epochMs / (365.2425 * dayMs)) + 50
  return latest - (((latest - twoDigits) % 100) + 100) % 100
}

/** Null where there is no such day or time. A leap second is the first one of the next minute. */
function epochOf (year: number, monthName: string, dayText: string, hourText: string, minuteText: string, secondText: string): number | null {
  const month = months.indexOf(monthName)
  const [day, hour, minute, second] = [Number(dayText), Number(hourText), Number(minuteText), Number(secondText)] as const
  if (month === -1 || day < 1 || day > monthDays[month]! || (month === 1 && day === 29 && !isLeap(year))) return null
  if (hour > 23 || minute > 59 || second > 60) return null
  return dayNumber(year, month, day) * dayMs + ((hour * 60 + minute) * 60 + second) * 1000
}

const isLeap = (year: number): boolean => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)

/** Days since 1970-01-01 in the Gregorian calendar. A year counted from March has its leap day at its end. */
function dayNumber (year: number, month: number, day: number): number {
  const marchYear = month < 2 ? year - 1 : year
  const dayOfYear = Math.floor((153 * ((month + 10) % 12) + 2) / 5) + day - 1
  return marchYear * 365 + Math.floor(marchYear / 4) - Math.floor(marchYear / 100) + Math.floor(marchYear / 400) + dayOfYear - 719468
}
