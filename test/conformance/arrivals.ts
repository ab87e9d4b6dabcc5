/** The judge of what arrived: nothing that the client did not send, by the letter, nothing twice, nothing out of place. */
import { strictAnswers } from '../support/strict-answers.ts'
import { strictRequests, type StrictReading, type StrictRequest } from '../support/strict-http.ts'
import type { Recorder } from '../support/recorder.ts'

export interface Seen {
  /** What the client sent on one connection. */
  sent: Buffer
  /** What it got. */
  got: Buffer
  upstream: Pick<Recorder, 'requests' | 'problems'>
  /** What an upstream's answer to a request is known by. Left out: its body is the request's target. */
  answers?: boolean
}

const named = ({ method, target, body }: StrictRequest): string => `${method} ${target} with ${body.length} bytes`

/** The target as a proxy passes it on: of an absolute one the path, and the asterisk for OPTIONS without one. */
const passedOn = ({ method, target }: StrictRequest): string => {
  const [, rest] = /^https?:\/\/[^/?]*(.*)$/i.exec(target) ?? []
  if (rest === undefined) return target
  if (rest === '' && method === 'OPTIONS') return '*'
  return rest.startsWith('/') ? rest : `/${rest}`
}

/**
 * The last answer refuses bytes that are no request: nobody can say what its method was, and whether a body belongs there, but the
 * connection closes behind it.
 */
const endsInRefusal = (got: Buffer): boolean => /HTTP\/1\.1 4[0-9]{2} (?:(?!HTTP\/1\.1 )[^])*connection: close\r\n(?:(?!HTTP\/1\.1 )[^])*$/i.test(got.toString('latin1'))

/** Which of the requests that were sent each of those is that arrived, each at most once; -1: none. Pipelined ones arrive in any order. */
export function placesOf (arrived: readonly StrictRequest[], sent: readonly StrictRequest[]): number[] {
  const taken = new Set<number>()
  return arrived.map(({ method, target, body }) => {
    const at = sent.findIndex((each, index) => !taken.has(index) && each.method === method && passedOn(each) === target && each.body.equals(body))
    taken.add(at)
    return at
  })
}

/** What is wrong, judged by a reading of what was sent; empty for nothing. */
function faultsOf ({ sent, got, upstream, answers = true }: Seen, { requests, stopped }: StrictReading): string[] {
  const faults = upstream.problems.map((what) => `the upstream got what is no HTTP: ${what}`)
  for (const [index, at] of placesOf(upstream.requests, requests).entries()) {
    if (at === -1) faults.push(`nobody sent the ${named(upstream.requests[index] as StrictRequest)} that arrived (of: ${requests.map(named).join('; ') || 'none'}; then: ${stopped || 'nothing'})`)
  }
  const reading = strictAnswers(got, requests.map(({ method }) => method))
  // Whoever sends empty lines alone is told that a head was waited for.
  const most = requests.length + (stopped === '' && !/^[\r\n]+$/.test(sent.toString('latin1')) ? 0 : 1)
  if (reading.answers.length > most) faults.push(`${reading.answers.length} answers to ${most} requests`)
  if (reading.rest !== '' && !endsInRefusal(got)) faults.push(`an answer is not to the letter: ${reading.rest}`)
  if (answers) {
    for (const [index, { status, body }] of reading.answers.entries()) {
      const request = requests[index]
      if (status === 200 && request !== undefined && request.method !== 'HEAD' && body.toString('latin1') !== passedOn(request)) {
        faults.push(`the answer to ${named(request)} was that to ${body.toString('latin1').slice(0, 100)}`)
      }
    }
  }
  return faults
}

/**
 * Nothing where all was as it must be by the letter; the names of the tolerances where it was with them.
 * @throws what is wrong
 */
export function judge (seen: Seen): string | undefined {
  const faults = faultsOf(seen, strictRequests(seen.sent))
  if (faults.length === 0) return undefined
  const tolerant = strictRequests(seen.sent, true)
  if (tolerant.tolerated.size > 0 && faultsOf(seen, tolerant).length === 0) return [...tolerant.tolerated].join(', ')
  throw new Error(`${faults.join('\n')}\ngot ${JSON.stringify(seen.got.toString('latin1').slice(0, 300))}`)
}
