import type { Recorded } from '../../support/recorder.ts'
import type { StrictRequest } from '../../support/strict-http.ts'
import { strictAnswers } from '../../support/strict-answers.ts'
import type { FieldList } from '../../support/http-bytes.ts'
import { placesOf } from '../arrivals.ts'

/** What one proxy made of the bytes of one connection. */
export interface Outcome {
  got: Buffer
  arrived: Recorded[]
  problems: string[]
}

export type Kind = 'refused here' | 'refused there' | 'other refusal' | 'request' | 'answer' | 'connection'

export interface Difference {
  kind: Kind
  what: string
}

/** A request and what came back, as far as the two ought to agree. */
interface Exchange {
  status: number
  body: string
  fields: string[]
}

/** What each proxy adds or changes of its own accord, and says so in its documentation. */
const ownRequestFields = /^(?:connection|keep-alive|host|via|forwarded|x-forwarded-.*|x-real-ip|x-request-id|content-length|transfer-encoding)$/i
const ownAnswerFields = /^(?:connection|keep-alive|via|date|server|x-request-id|content-length|transfer-encoding|proxy-status)$/i

const kept = (fields: FieldList, own: RegExp): string[] => fields.filter(([name]) => !own.test(name)).map(([name, value]) => `${name.toLowerCase()}: ${value}`).toSorted()

function exchanges (methods: readonly string[], { got }: Outcome): Exchange[] {
  return strictAnswers(got, methods).answers.map(({ status, headers, body }) => ({ status, body: body.toString('latin1'), fields: kept(headers, ownAnswerFields) }))
}

const host = ({ headers }: Recorded): string => headers.find(([name]) => name.toLowerCase() === 'host')?.[1] ?? ''

function requestDiffers (ours: Recorded, theirs: Recorded): string | null {
  const parts: Array<[string, (request: Recorded) => string]> = [
    ['method', ({ method }) => method], ['target', ({ target }) => target], ['version', ({ version }) => version], ['Host', host],
    ['body', ({ body }) => body.toString('latin1')]
  ]
  for (const [name, of] of parts) if (of(ours) !== of(theirs)) return `${name}: here ${of(ours).slice(0, 300)}, there ${of(theirs).slice(0, 300)}`
  const [here, there] = [ours, theirs].map(({ headers }) => kept(headers, ownRequestFields)) as [string[], string[]]
  const [onlyHere, onlyThere] = [without(here, there), without(there, here)]
  return onlyHere.length + onlyThere.length === 0 ? null : `fields: only here ${JSON.stringify(onlyHere).slice(0, 300)}, only there ${JSON.stringify(onlyThere).slice(0, 300)}`
}

/** What is in the one list and not in the other, counted. */
function without (list: readonly string[], other: readonly string[]): string[] {
  const rest = [...other]
  return list.filter((each) => {
    const at = rest.indexOf(each)
    if (at !== -1) rest.splice(at, 1)
    return at === -1
  })
}

/** Those that arrived, as the client sent them; others behind. */
function inOrder (sent: readonly StrictRequest[], { arrived }: Outcome): Recorded[] {
  const places = placesOf(arrived, sent)
  return arrived.map((request, index) => ({ request, at: places[index] === -1 ? sent.length : places[index] as number })).toSorted((a, b) => a.at - b.at).map(({ request }) => request)
}

/** The first difference between what we and what the other did; null: none. What follows the first one follows from it. */
export function differenceOf (sent: readonly StrictRequest[], ours: Outcome, theirs: Outcome): Difference | null {
  const methods = sent.map(({ method }) => method)
  const here = exchanges(methods, ours)
  const there = exchanges(methods, theirs)
  const arrivedHere = inOrder(sent, ours)
  const arrivedThere = inOrder(sent, theirs)
  for (let i = 0; i < Math.max(here.length, there.length); i++) {
    const one = here[i]
    const other = there[i]
    const at = `answer ${i + 1}`
    if (one === undefined || other === undefined) return { kind: 'connection', what: `${at}: here ${one?.status ?? 'none'}, there ${other?.status ?? 'none'}` }
    // The upstream says nothing but 200: any other status is the proxy's own.
    if (one.status !== 200 || other.status !== 200) {
      if (one.status === other.status) continue
      const kind = other.status === 200 ? 'refused here' : one.status === 200 ? 'refused there' : 'other refusal'
      return { kind, what: `${at}: here ${one.status}, there ${other.status}` }
    }
    const [requestHere, requestThere] = [arrivedHere.shift(), arrivedThere.shift()]
    if (requestHere === undefined || requestThere === undefined) return { kind: 'request', what: `${at} without a request: here ${requestHere?.target ?? 'none'}, there ${requestThere?.target ?? 'none'}` }
    const request = requestDiffers(requestHere, requestThere)
    if (request !== null) return { kind: 'request', what: `${at}, ${request}` }
    if (one.body !== other.body || one.fields.join() !== other.fields.join()) return { kind: 'answer', what: `${at}: here ${JSON.stringify(one)}, there ${JSON.stringify(other)}` }
  }
  if (arrivedHere.length !== arrivedThere.length) return { kind: 'request', what: `behind the last answer: here ${arrivedHere.length} requests, there ${arrivedThere.length}` }
  return null
}
