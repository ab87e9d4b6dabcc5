import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answering } from '../../support/faulty-upstream.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { get, inFront } from './support.ts'

const refusing = (statusCode?: number) => async (): Promise<never> => {
  throw Object.assign(new Error('who?'), statusCode === undefined ? {} : { statusCode })
}

for (const [hook, statusCode] of [['preHandler', 401], ['onRequest', 429], ['preParsing', 403]] as const) {
  test(`an app's ${hook} hook that refuses with ${statusCode} is answered by the app, in front of the gateway's routes too`, async (t) => {
    const { gateway, upstream } = await inFront(t, answering({}), { before: (app) => {
      app.setErrorHandler<Error & { statusCode: number }>((error, _request, reply) => reply.code(error.statusCode).send({ mine: error.message }))
      app.addHook(hook, refusing(statusCode))
    } })
    const got = await rawRequest(gateway.port, get)
    assert.deepEqual([got.status, got.json()], [statusCode, { mine: 'who?' }])
    assert.equal(upstream.requests.length, 0)
    await gateway.idle()
    // What an earlier onRequest hook refuses has never come to the gateway.
    if (hook !== 'onRequest') await gateway.left({ counted: 'neutral', status: statusCode, upstream: null })
  })
}

test('without an error handler of the app, Fastify answers what a hook refuses', async (t) => {
  const { gateway } = await inFront(t, answering({}), { before: (app) => { app.addHook('preHandler', refusing(401)) } })
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.status, (got.json() as { message: string }).message], [401, 'who?'])
  await gateway.left({ counted: 'neutral', status: 401, upstream: null })
})

for (const [hook, statusCode] of [['preHandler', undefined], ['preHandler', 500], ['preHandler', 503], ['onRequest', undefined]] as const) {
  test(`an app's ${hook} hook that breaks (${statusCode ?? 'no status'}) is an internal error, told to the log alone`, async (t) => {
    const { gateway } = await inFront(t, answering({}), { before: (app) => { app.addHook(hook, refusing(statusCode)) } })
    const got = await rawRequest(gateway.port, get)
    assert.deepEqual([got.status, (got.json() as { reason: string }).reason], [500, 'internal_error'])
    assert.doesNotMatch(got.text(), /who/)
    assert.ok(gateway.lines.find('internal_error'))
    if (hook === 'onRequest') return
    const line = await gateway.lines.waitFor('access')
    assert.deepEqual([line['status'], line['reason']], [500, 'internal_error'])
  })
}
