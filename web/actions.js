/** What an operator may do about an upstream. Each asks before it acts, and says why in the journal. */
import { pathOf, post } from './api.js'
import { ask, durationField, reasonField } from './dialog.js'
import { clock, millis, plural, words } from './format.js'

const breaker = ({ pool, upstream }, action) => `breakers/${pathOf(pool, upstream)}/${action}`
const member = ({ pool, upstream }, action) => `pools/${pathOf(pool)}/upstreams/${pathOf(upstream)}/${action}`

const inFlightNow = ({ inFlight }) => inFlight === 0 ? 'Nothing is in flight at it.' : `${plural(inFlight, 'exchange')} in flight at it ${inFlight === 1 ? 'goes' : 'go'} on.`

/** What each action says, asks and does: for `force`, the state is the action. */
const actions = {
  check: (upstream) => ({
    title: 'Check now',
    what: ['A health check is made at once. Its result counts like every other.'],
    fields: [reasonField()],
    confirm: 'Check now',
    run: async (reason) => {
      const { check, healthy } = await post(`health/${pathOf(upstream.pool, upstream.upstream)}/check`, { reason })
      const result = check.passed === null ? 'says nothing' : check.passed ? 'passed' : 'failed'
      return `The check ${result}: ${words(check.cause)}${check.status === null ? '' : ` (${check.status})`} in ${millis(check.ms)} ms. The upstream is ${healthy ? 'healthy' : 'unhealthy'}.`
    }
  }),
  drain: (upstream) => ({
    title: 'Drain',
    what: ['It gets no new requests.', inFlightNow(upstream)],
    fields: [durationField('until it is taken back'), reasonField()],
    confirm: 'Drain',
    run: async (ttlMs, reason) => {
      const { drain } = await post(member(upstream, 'drain'), { reason, ...ttlMs > 0 && { ttlMs } })
      return drain?.until == null ? 'Draining, until it is taken back.' : `Draining, until ${clock(drain.until)}.`
    }
  }),
  ready: (upstream) => ({
    title: 'Take back',
    what: ['It gets requests again, if its checks and its breaker allow it.'],
    fields: [reasonField()],
    confirm: 'Take back',
    run: async (reason) => {
      await post(member(upstream, 'ready'), { reason })
      return 'Back in rotation.'
    }
  }),
  open: (upstream) => ({
    title: 'Force the breaker open',
    what: ['No request is sent to it, and no probe, until the time is over.', inFlightNow(upstream)],
    fields: [durationField(), reasonField()],
    confirm: 'Force open',
    run: force(upstream, 'open')
  }),
  closed: (upstream) => ({
    title: 'Force the breaker closed',
    what: ['Requests are sent to it whatever comes back: failures do not open the circuit until the time is over.'],
    fields: [durationField(), reasonField()],
    confirm: 'Force closed',
    run: force(upstream, 'closed')
  }),
  auto: (upstream) => ({
    title: 'End the force',
    what: ['The breaker goes by what it has seen again.'],
    fields: [reasonField()],
    confirm: 'End the force',
    run: (reason) => force(upstream, 'auto')(0, reason)
  }),
  reset: (upstream) => ({
    title: 'Reset the breaker',
    what: ['The circuit is closed with a clean record, and a force is ended. Requests are sent to it at once.'],
    fields: [reasonField()],
    confirm: 'Reset',
    run: async (reason) => `The breaker is ${(await post(breaker(upstream, 'reset'), { reason })).state}.`
  })
}

const force = (upstream, state) => async (ttlMs, reason) => {
  const view = await post(breaker(upstream, 'force'), { state, reason, ...ttlMs > 0 && { ttlMs } })
  return view.force === null ? `Not forced any more; the breaker is ${view.state}.` : `Forced ${view.force.state}, until ${clock(view.force.until)}.`
}

/** @param done called when something was changed */
export function act (action, upstream, done) {
  const { title, run, ...rest } = actions[action](upstream)
  ask({
    ...rest,
    title: `${title}: ${upstream.pool} / ${upstream.upstream}`,
    run: async (...values) => {
      const result = await run(...values)
      done()
      return result
    }
  })
}
