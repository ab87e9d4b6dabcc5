/** The judge of what arrived: nothing that the client did not send, by the letter, nothing twice, nothing out of place. */
import { strictAnswers } from '../support/strict-answers.ts'
import { strictRequests, type StrictRequest } from '../support/strict-http.ts'
import type { Recorder } from '../support/recorder.ts'
import { tolerances } from './tolerances.ts'

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

/** The target as a proxy passes it on: of an absolute one the path. */
const passedOn = (target: string): string => {
  const [, rest] = /^https?:\/\/[^/?]*(.*)$/i.exec(target) ?? []
  if (rest === undefined) return target
  return rest.startsWith('/') ? rest : `/${rest}`
}

/** What is wrong; empty for nothing. */
export function faultsOf ({ sent, got, upstream, answers = true }: Seen): string[] {
  const faults = upstream.problems.map((what) => `the upstream got what is no HTTP: ${what}`)
  const { requests, stopped } = strictRequests(sent)
  // In order, each at most once; those between may have been refused.
  let next = 0
  for (const arrived of upstream.requests) {
    const at = requests.findIndex((each, index) => index >= next && each.method === arrived.method && passedOn(each.target) === arrived.target && each.body.equals(arrived.body))
    if (at === -1) faults.push(`nobody sent the ${named(arrived)} that arrived (of: ${requests.map(named).join('; ') || 'none'}; then: ${stopped || 'nothing'})`)
    else next = at + 1
  }
  const reading = strictAnswers(got, requests.map(({ method }) => method))
  const most = requests.length + (stopped === '' ? 0 : 1)
  if (reading.answers.length > most) faults.push(`${reading.answers.length} answers to ${most} requests`)
  if (reading.rest !== '') faults.push(`an answer is not to the letter: ${reading.rest}`)
  if (answers) {
    for (const [index, { status, body }] of reading.answers.entries()) {
      const request = requests[index]
      if (status === 200 && request !== undefined && request.method !== 'HEAD' && body.toString('latin1') !== passedOn(request.target)) {
        faults.push(`the answer to ${named(request)} was that to ${body.toString('latin1').slice(0, 100)}`)
      }
    }
  }
  return faults
}

/**
 * The same, where a tolerance may explain what is wrong: then its name is what is returned; undefined where nothing was wrong.
 * @throws what is wrong and not explained
 */
export function judge (seen: Seen): string | undefined {
  const faults = faultsOf(seen)
  if (faults.length === 0) return undefined
  for (const { name, meant } of tolerances) {
    const sent = Buffer.from(meant(seen.sent.toString('latin1')), 'latin1')
    if (!sent.equals(seen.sent) && faultsOf({ ...seen, sent }).length === 0) return name
  }
  throw new Error(`${faults.join('\n')}\ngot ${JSON.stringify(seen.got.toString('latin1').slice(0, 300))}`)
}
