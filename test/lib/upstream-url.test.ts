import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { parseUpstreamUrl, showUrl, upstreamId } from '../../lib/upstream-url.ts'

test('an upstream is known by host and port, whatever way its URL is written', () => {
  const table: [string, string, string, string, boolean][] = [
    ['http://127.0.0.1:9001', '127.0.0.1:9001', 'http://127.0.0.1:9001', '', false],
    ['http://Shop.Example', 'shop.example:80', 'http://shop.example', '', false],
    ['HTTP://shop.example:80/', 'shop.example:80', 'http://shop.example', '', false],
    ['https://shop.example', 'shop.example:443', 'https://shop.example', '', true],
    ['https://shop.example:8443/base/', 'shop.example:8443', 'https://shop.example:8443', '/base', true],
    ['http://shop_1:80/a/b', 'shop_1:80', 'http://shop_1', '/a/b', false],
    ['http://bücher.example', 'xn--bcher-kva.example:80', 'http://xn--bcher-kva.example', '', false],
    ['http://[::1]', '[::1]:80', 'http://[::1]', '', false],
    ['http://[0:0::1]:9001/x', '[::1]:9001', 'http://[::1]:9001', '/x', false]
  ]
  for (const [text, id, origin, basePath, secure] of table) {
    deepEqual(parseUpstreamUrl(text), { id, origin, basePath, socketPath: null, secure }, text)
    equal(upstreamId(text), id)
  }
})

test('a socket is known by its path', () => {
  const expected = { id: '/run/app.sock', origin: 'http://localhost', basePath: '', socketPath: '/run/app.sock', secure: false }
  deepEqual(parseUpstreamUrl('unix:/run/app.sock'), expected)
  deepEqual(parseUpstreamUrl('unix:///run/app.sock'), expected)
})

test('a URL that cannot be an upstream is refused with what is allowed', () => {
  const table: [string, string][] = [
    ['', 'must be http://host:port, https://host:port or unix:/path/to.sock, got ""'],
    ['localhost:9001', 'must be http://host:port, https://host:port or unix:/path/to.sock, got "localhost:9001"'],
    ['ftp://a', 'must be http://host:port, https://host:port or unix:/path/to.sock, got "ftp://a"'],
    ['http:/a', 'must be http://host:port, https://host:port or unix:/path/to.sock, got "http:/a"'],
    ['http://', 'must be http://host:port, https://host:port or unix:/path/to.sock with a valid host and a port from 1 to 65535, got "http://"'],
    ['http://a:65536', 'must be http://host:port, https://host:port or unix:/path/to.sock with a valid host and a port from 1 to 65535, got "http://a:65536"'],
    ['http://a:x', 'must be http://host:port, https://host:port or unix:/path/to.sock with a valid host and a port from 1 to 65535, got "http://a:x"'],
    ['http://*.a', 'must be http://host:port, https://host:port or unix:/path/to.sock with a valid host and a port from 1 to 65535, got "http://*.a"'],
    ['http://a:0', 'must have a port from 1 to 65535, got "http://a:0"'],
    ['http://a:/x', 'must have a port after the colon, got "http://a:/x"'],
    ['http://user:secret@a', 'must not have credentials, got "http://[redacted]@a"'],
    ['http://user:se/cr@et@a', 'must be http://host:port, https://host:port or unix:/path/to.sock with a valid host and a port from 1 to 65535, got "http://[redacted]@a"'],
    ['http://@a', 'must not have credentials, got "http://[redacted]@a"'],
    ['http://a/?key=secret', 'must not have a query or a fragment, got "http://a/"'],
    ['http://a#secret', 'must not have a query or a fragment, got "http://a"'],
    ['http://a b', 'must be http://host:port, https://host:port or unix:/path/to.sock, without spaces, control characters and backslashes, got "http://a b"'],
    ['http://a\t.example', 'must be http://host:port, https://host:port or unix:/path/to.sock, without spaces, control characters and backslashes, got "http://a\\t.example"'],
    ['http:\\\\a', 'must be http://host:port, https://host:port or unix:/path/to.sock, without spaces, control characters and backslashes, got "http:\\\\\\\\a"'],
    ['unix:run/app.sock', 'must have an absolute socket path, like unix:/run/app.sock, got "unix:run/app.sock"'],
    ['unix:/run/../app.sock', 'must have a plain socket path, without empty, "." or ".." segments, got "unix:/run/../app.sock"'],
    ['unix:/run/', 'must have a plain socket path, without empty, "." or ".." segments, got "unix:/run/"'],
    ['unix:/run/a?b', 'must have a socket path without query and fragment, got "unix:/run/a"'],
    [`unix:/${'a'.repeat(107)}`, `must have a socket path of at most 107 bytes, got "unix:/${'a'.repeat(107)}"`]
  ]
  for (const [text, message] of table) throws(() => parseUpstreamUrl(text), { name: 'TypeError', message }, text)
})

test('no text makes it fail in another way, and what it accepts is stable', () => {
  const parts = fc.constantFrom('http://', 'https://', 'unix:', 'a', 'A.b', '127.1', '[::1]', ':80', ':443', ':0', '/', '/x', '@', '?q', '#', '%', '%2e', '..', ' ', '\u0000', 'é')
  const text = fc.oneof(fc.string(), fc.array(parts, { maxLength: 8 }).map(chosen => chosen.join('')))
  fc.assert(fc.property(text, input => {
    let parsed
    try {
      parsed = parseUpstreamUrl(input)
    } catch (error) {
      ok(error instanceof TypeError && error.message.includes(', got "'))
      return
    }
    const again = parsed.socketPath === null ? parsed.origin + parsed.basePath : `unix:${parsed.socketPath}`
    deepEqual(parseUpstreamUrl(again), parsed)
  }), { seed: 7, numRuns: 2000 })
})

test('what is shown of a URL never holds its credentials, query or fragment', () => {
  const secret = fc.stringMatching(/^[a-z0-9:/?#@.-]{1,20}$/).map(text => `SECRET${text}SECRET`)
  fc.assert(fc.property(secret, secret, (credentials, query) => {
    ok(!showUrl(`http://${credentials}@host/`).includes('SECRET'))
    ok(!showUrl(`http://host/?${query.replaceAll('@', '')}`).includes('SECRET'))
  }), { seed: 7 })
})
