import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { Attempt, type AttemptOwner } from '../../../plugins/forwarder/attempt.ts'
import type { Upstream } from '../../../plugins/upstream-pools/upstream.ts'

for (const path of ['/', '*']) {
  test(`a request that cannot even be given to undici (${path}) gives back all that it holds, and throws at nobody`, () => {
    let left = 0
    const broken = (): never => { throw new Error('cannot') }
    const upstream = { inFlight: 1, connects: 0, dispatcher: { dispatch: broken }, dispatchFresh: broken, leave () { left++ } } as unknown as Upstream
    const failed: string[] = []
    const settled: string[] = []
    const owner = { attemptFailed (reason: string, outcome: string, { message }: Error) { failed.push(reason, outcome, message) } } as unknown as AttemptOwner
    const attempt = new Attempt(owner, upstream, { settle (permit, outcome) { settled.push(`${permit} ${outcome}`) } }, 5, { method: 'OPTIONS', path, headers: [], body: null })
    attempt.start()
    deepEqual(failed, ['internal_error', 'ignored', 'cannot'])
    deepEqual(settled, ['5 ignored'])
    deepEqual([left, upstream.inFlight, attempt.stage], [1, 0, 'done'])
    attempt.cancel('cancelled')
    equal(left, 1)
  })
}
