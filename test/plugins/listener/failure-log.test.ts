import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { FastifyBaseLogger } from 'fastify'
import { FailureLog } from '../../../plugins/listener/failure-log.ts'

test('however many connections fail, there is a line for each kind in ten seconds, and none is left uncounted', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const lines: object[] = []
  const tell = (level: string) => (fields: object, msg: string): void => { lines.push({ level, msg, ...fields }) }
  const log = new FailureLog({ info: tell('info'), warn: tell('warn') } as unknown as FastifyBaseLogger)
  const failed = { msg: 'connection_failed' }

  for (let i = 0; i < 100; i++) log.add('tls_handshake', `192.0.2.${i}`, Object.assign(new Error('long'), { code: 'ERR_SSL_X' }))
  log.add('proxy_header', '10.0.0.1', null)
  deepEqual(lines.splice(0), [
    { level: 'info', ...failed, failure: 'tls_handshake', client_ip: '192.0.2.0', error: 'ERR_SSL_X', count: 1 },
    { level: 'warn', ...failed, failure: 'proxy_header', client_ip: '10.0.0.1', error: null, count: 1 }
  ])
  t.mock.timers.tick(9999)
  equal(lines.length, 0)
  t.mock.timers.tick(1)
  deepEqual(lines.splice(0), [{ level: 'info', ...failed, failure: 'tls_handshake', client_ip: null, error: null, count: 99 }])

  // Its time begins anew; the other kind is told at once again.
  log.add('tls_handshake', '192.0.2.1', new Error('why'))
  log.add('proxy_header', '10.0.0.2', null)
  equal(lines.splice(0).length, 1)
  t.mock.timers.tick(10_000)
  deepEqual(lines.splice(0), [{ level: 'info', ...failed, failure: 'tls_handshake', client_ip: null, error: null, count: 1 }])
  t.mock.timers.tick(10_000)
  log.add('tls_handshake', '192.0.2.2', new Error('why'))
  deepEqual(lines.splice(0), [{ level: 'info', ...failed, failure: 'tls_handshake', client_ip: '192.0.2.2', error: 'why', count: 1 }])
  log.close()
  t.mock.timers.tick(60_000)
  equal(lines.length, 0)
})
