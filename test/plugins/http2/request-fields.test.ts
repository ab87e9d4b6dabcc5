import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { requestFields } from '../../../plugins/http2/request-fields.ts'

const of = (headers: string[], trailers = false) => ({ ...requestFields({ method: 'GET', path: '/', headers, trailers }, 'http', 'a:1') })
const pseudo = { ':method': 'GET', ':path': '/', ':scheme': 'http', ':authority': 'a:1' }

test('Host is the authority, and the fields of the connection stay here', () => {
  deepEqual(of(['Host', 'shop', 'Connection', 'close', 'TE', 'gzip', 'Transfer-Encoding', 'chunked', 'Upgrade', 'h2c', 'HTTP2-Settings', 'x', 'Keep-Alive', '5', 'Proxy-Connection', 'x']), { ...pseudo, ':authority': 'shop' })
  deepEqual(of([], true), { ...pseudo, 'te': 'trailers' })
})

test('names are lower-case, and several lines of one name stay in their order', () => {
  deepEqual(of(['X-One', 'a', 'x-one', 'b', 'X-ONE', 'c']), { ...pseudo, 'x-one': ['a', 'b', 'c'] })
})

test('cookies are joined, and so are fields of which there may be one line only', () => {
  deepEqual(of(['Cookie', 'a=1', 'cookie', 'b=2', 'User-Agent', 'x', 'User-Agent', 'y']), { ...pseudo, 'cookie': 'a=1; b=2', 'user-agent': 'x, y' })
})

test('a name that every object has is a name like any', () => {
  deepEqual(of(['constructor', 'a', '__proto__', 'b']), { ...pseudo, 'constructor': 'a', ['__proto__']: 'b' })
})
