import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { accessLine, loggedPath, malformedLine } from '../../lib/access-line.ts'
import { Exchange } from '../../lib/exchange.ts'
import { failureOf, failures, type Reason } from '../../lib/failure.ts'

const fields = ['request_id', 'method', 'path', 'status', 'bytes', 'duration_ms', 'client_ip', 'route', 'pool', 'upstream', 'attempts', 'reason']

describe('logged path', () => {
  const table: [string, string][] = [
    ['/', '/'], ['/a/b', '/a/b'], ['/a?token=secret', '/a'], ['/?', '/'], ['/a?b?c', '/a'], ['/a#secret', '/a'], ['/a#b?c', '/a'], ['/a%3Fb', '/a%3Fb'], ['*', '*'], ['', '/'],
    ['http://shop/a/b?c', '/a/b'], ['HTTP://shop:80/a', '/a'], ['http://shop', '/'], ['http://shop?token=secret', '/'],
    ['http://user:secret@shop/a', '/a'], ['ftp://user:secret@shop/a', '/a'], ['//shop/a', '//shop/a'], ['a/b?c', 'a/b']
  ]
  for (const [url, path] of table) it(`of "${url}" is "${path}"`, () => { equal(loggedPath(url), path) })

  it('is cut at 2048 characters', () => {
    equal(loggedPath(`/${'x'.repeat(2047)}`).length, 2048)
    equal(loggedPath(`/${'x'.repeat(60000)}`), `/${'x'.repeat(2047)}`)
    equal(loggedPath(`/${'x'.repeat(3000)}?q`).length, 2048)
    equal(loggedPath(`http://shop/${'x'.repeat(3000)}`).length, 2048)
  })

  it('never tells the query', () => {
    fc.assert(fc.property(fc.webUrl(), fc.string({ minLength: 1 }), (url, secret) => {
      const [path] = loggedPath(`${url}?${secret}`).split('?')
      equal(loggedPath(`${url}?${secret}`), path)
      equal(loggedPath(`${url}#${secret}`), loggedPath(url))
    }))
  })
})

describe('access line', () => {
  function exchange (changes: Partial<Exchange> = {}): Exchange {
    return Object.assign(new Exchange('id-1', '203.0.113.9', 1000), changes)
  }

  it('of an answer that an upstream gave', () => {
    const given = exchange({ route: '/api/*', pool: 'shop', upstream: '127.0.0.1:9001', attempts: 1, bytes: 42 })
    deepEqual(accessLine(given, 'GET', '/api/x?q=1', 200, 0, 1012.3456), {
      request_id: 'id-1', method: 'GET', path: '/api/x', status: 200, bytes: 42, duration_ms: 12.346, client_ip: '203.0.113.9',
      route: '/api/*', pool: 'shop', upstream: '127.0.0.1:9001', attempts: 1, reason: null
    })
  })

  it('of a traced request: the id of its trace is told', () => {
    equal(accessLine(exchange({ traceId: '4bf92f3577b34da6a3ce929d0e0e4736' }), 'GET', '/', 200, 0, 1000).trace_id, '4bf92f3577b34da6a3ce929d0e0e4736')
  })

  it('of a refusal: nobody was asked, and the reason is told', () => {
    deepEqual(accessLine(exchange({ reason: 'shed_capacity' }), 'POST', '/', 503, 180, 1000), {
      request_id: 'id-1', method: 'POST', path: '/', status: 503, bytes: 180, duration_ms: 0, client_ip: '203.0.113.9',
      route: null, pool: null, upstream: null, attempts: 0, reason: 'shed_capacity'
    })
  })

  const statuses: [string, Reason | null, number, number][] = [
    ['an answer', null, 200, 200],
    ['an upstream\'s own 503', null, 503, 503],
    ['a client that left before the head', 'client_cancelled', 0, 499],
    ['a client that left in the middle of a body', 'client_cancelled', 200, 499],
    ['an answer that the upstream cut off', 'body_truncated', 200, 200],
    ['a failure that could not be told any more', 'headers_timeout', 0, 504],
    ['nothing sent and no reason', null, 0, 499]
  ]
  for (const [name, reason, sent, status] of statuses) {
    it(`${name} counts as ${status}`, () => { equal(accessLine(exchange({ reason }), 'GET', '/', sent, 0, 1000).status, status) })
  }

  it('takes the forwarder\'s count of bytes, nothing included, else the answer\'s', () => {
    equal(accessLine(exchange({ bytes: 0 }), 'GET', '/', 200, 99, 1000).bytes, 0)
    equal(accessLine(exchange({ bytes: -1 }), 'GET', '/', 200, 99, 1000).bytes, 99)
  })

  it('has the fields of the contract, in order', () => {
    deepEqual(Object.keys(accessLine(exchange(), 'GET', '/', 200, 0, 1000)), fields)
    deepEqual(Object.keys(malformedLine('bad_request', '203.0.113.9')), fields)
  })

  it('of bytes that never became a request', () => {
    for (const reason of Object.keys(failures) as Reason[]) {
      const line = malformedLine(reason, '203.0.113.9')
      equal(line.status, failureOf(reason).status)
      ok(line.method === null && line.path === null && line.request_id === null)
      equal(line.reason, reason)
      equal(line.client_ip, '203.0.113.9')
    }
  })

  it('of such bytes, with what is known of them', () => {
    const { request_id: id, method, path, bytes } = malformedLine('request_timeout', '203.0.113.9', { requestId: 'id-1', method: 'POST', bytes: 180 })
    deepEqual([id, method, path, bytes], ['id-1', 'POST', null, 180])
  })
})

it('an exchange keeps its first reason', () => {
  const exchange = new Exchange('id-1', '203.0.113.9', 0)
  exchange.fail('headers_timeout')
  exchange.fail('client_cancelled')
  equal(exchange.reason, 'headers_timeout')
})
