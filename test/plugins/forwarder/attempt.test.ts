import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { Attempt } from '../../../plugins/forwarder/attempt.ts'
import type { AttemptOwner } from '../../../plugins/forwarder/owner.ts'
import type { Outgoing } from '../../../plugins/forwarder/outgoing.ts'
import type { Terms } from '../../../plugins/forwarder/terms.ts'
import type { Upstream } from '../../../plugins/upstream-pools/upstream.ts'

for (const path of ['/', '*']) {
  test(`a request that cannot even be given to undici (${path}) gives back all that it holds, and throws at nobody`, () => {
    let left = 0
    let released = 0
    const broken = (): never => { throw new Error('cannot') }
    const upstream = { connects: 0, dispatcher: { dispatch: broken }, dispatchFresh: broken, leave () { left++ } } as unknown as Upstream
    const failed: string[] = []
    const settled: string[] = []
    const owner = { attemptFailed (_attempt: Attempt, reason: string, outcome: string, { message }: Error) { failed.push(reason, outcome, message) } } as unknown as AttemptOwner
    const lane = {
      pool: { upstreams: [upstream] },
      breakers: [null],
      settle (index: number, permit: number, outcome: string, gatewayFailure: boolean) { settled.push(`${index} ${permit} ${outcome} ${gatewayFailure}`) },
      release () { released++ }
    }
    const terms = { lane, limits: { headersMs: 0 }, usual: null, hedging: null } as unknown as Terms
    const outgoing = { method: 'OPTIONS', body: null, pathFor: () => path, fieldsFor: () => [], stamped: () => [] } as unknown as Outgoing
    const attempt = new Attempt(owner, terms, 0, 5, outgoing, performance.now())
    attempt.start()
    deepEqual(failed, ['internal_error', 'ignored', 'cannot'])
    deepEqual(settled, ['0 5 ignored false'])
    deepEqual([left, released, attempt.stage], [1, 1, 'done'])
    attempt.cancel('cancelled')
    deepEqual([left, released], [1, 1])
    equal(settled.length, 1)
  })
}
