import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { hostOf, isAuthority, parseTarget } from '../../../lib/http/target.ts'

const pathOf = (url: string, method = 'GET') => parseTarget(url, method)?.path ?? null

describe('request target: what passes, byte for byte', () => {
  const paths = [
    '/', '//', '/a//b/', '/a;b=c;d', '/;', '/a..;b', '/...;/b', '/;../a', '/a%2Fb', '/a%2fb', '/%2F', '/a%5Cb', '/a.b', '/.well-known/x', '/..a', '/a..', '/...', '/a/.../b', '/.a/..b',
    '/%2e%2e%2e', '/a%2e', '/%41%7E', '/%00', '/caf\u00e9', '/:id', '/a@b', '/*', '/a*b', '/a&b=c', '/"<>^`{|}', '/http://x/y', '//shop:80/x', '//:'
  ]
  for (const path of paths) {
    it(path, () => {
      deepEqual(parseTarget(path, 'GET'), { path, search: '', authority: null })
      deepEqual(parseTarget(`${path}?q=1`, 'POST'), { path, search: '?q=1', authority: null })
    })
  }

  it('leaves a query alone whatever it holds, but a fragment', () => {
    for (const search of ['?', '??', '?a=/../b', '?%', '?%zz', '?a\\b', '?../..', '?a b', '?\u00ff', `?${'x'.repeat(60000)}`]) {
      deepEqual(parseTarget(`/p${search}`, 'GET'), { path: '/p', search, authority: null })
    }
    equal(parseTarget('/p?a#b', 'GET'), null)
  })
})

describe('request target: what is refused', () => {
  const refused = [
    '/.', '/..', '/./', '/../', '/a/.', '/a/..', '/a/./b', '/a/../b', '/%2e', '/%2E', '/%2e%2e', '/.%2e', '/%2E.', '/a/%2e%2E/b', '//../', '/a//./b',
    '/a%2f../b', '/a%2F..', '/..%2fb', '/..%2F..%2Fetc/passwd', '/a/%2e%2e%2fb', '/..%5cb', '/a%5C..%5Cb', '/a%2f.%2fb',
    '/..;', '/.;/a', '/a/..;/b', '/a/..;x=1/b', '/%2e.;/b', '/a%2F..;/b', '/a\\b', '/\\', '/a#b', '/#', '/a b', '/\u0000', '/a\u0001', '/a\tb', '/a\u007f', '/%', '/%2', '/%g0', '/%0g', '/a%%41', '/a%u0041',
    '', 'a', 'a/b', '?a', '*a', '../', '.', 'example.com', 'example.com:443', 'ftp://a/', 'file:///a', 'http:/a', 'http:a', 'http://', 'http:///a',
    'http://user@host/', 'http://user:secret@host/', 'http://a b/', 'http://a/../b', 'http://a/%2e%2e/', 'http://a/b#c', 'http://a\\b/', 'http://[::1/', 'http://a:b/'
  ]
  for (const url of refused) {
    it(JSON.stringify(url), () => { equal(parseTarget(url, 'GET'), null) })
  }
})

describe('request target: its other forms', () => {
  it('takes "*" for OPTIONS only', () => {
    deepEqual(parseTarget('*', 'OPTIONS'), { path: '*', search: '', authority: null })
    for (const method of ['GET', 'POST', 'options', 'TRACE']) equal(parseTarget('*', method), null)
  })

  it('takes an absolute form apart', () => {
    deepEqual(parseTarget('http://Shop.example:81/a/b?c', 'GET'), { path: '/a/b', search: '?c', authority: 'Shop.example:81' })
    deepEqual(parseTarget('HTTPS://[::1]/a', 'GET'), { path: '/a', search: '', authority: '[::1]' })
    deepEqual(parseTarget('http://shop', 'GET'), { path: '/', search: '', authority: 'shop' })
    deepEqual(parseTarget('http://shop?a=b', 'GET'), { path: '/', search: '?a=b', authority: 'shop' })
  })

  it('reads an absolute form without a path as "*" for OPTIONS (RFC 9112 section 3.2.4)', () => {
    deepEqual(parseTarget('http://shop:80', 'OPTIONS'), { path: '*', search: '', authority: 'shop:80' })
    equal(pathOf('http://shop:80/', 'OPTIONS'), '/')
  })
})

describe('request target: properties', () => {
  const piece = fc.constantFrom('/', '//', '.', '..', '%2e', '%2E', '%2f', '%2F', '%5c', '\\', '%', '%4', 'a', 'b.c', ';', '?', '#', '*', ':', '@', '%25', '%252e', '\u0000', ' ', '\u00e9')
  const url = fc.array(piece, { maxLength: 12 }).map((pieces) => `/${pieces.join('')}`)

  it('never returns a path that holds a dot segment after one round of decoding', () => {
    fc.assert(fc.property(url, (text) => {
      const target = parseTarget(text, 'GET')
      if (target === null) return
      const decoded = target.path.replaceAll(/%([0-9a-f]{2})/gi, (_whole, hex: string) => String.fromCharCode(parseInt(hex, 16)))
      for (const segment of decoded.split(/[/\\]/)) ok(segment !== '.' && segment !== '..', `${JSON.stringify(text)} -> ${JSON.stringify(decoded)}`)
    }), { numRuns: 3000 })
  })

  it('changes nothing: path and search together are the target', () => {
    fc.assert(fc.property(url, (text) => {
      const target = parseTarget(text, 'GET')
      if (target !== null) equal(target.path + target.search, text)
      const absolute = parseTarget(`http://shop${text}`, 'GET')
      deepEqual(absolute, target === null ? null : { ...target, authority: 'shop' })
    }), { numRuns: 2000 })
  })

  it('agrees with the URL parser of browsers on every path it lets pass', () => {
    fc.assert(fc.property(fc.array(fc.constantFrom('/', 'a', '.', '..', '%2e', '%2F', ';', '%41'), { maxLength: 10 }).map((pieces) => `/${pieces.join('')}`), (text) => {
      const path = pathOf(text)
      if (path !== null) equal(new URL(`http://shop${text}`).pathname, path)
    }), { numRuns: 2000 })
  })

  it('never throws, and takes linear time even for hostile text', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), fc.constantFrom('GET', 'OPTIONS'), (text, method) => { parseTarget(text, method) }))
    for (const unit of ['/.', '%2e', '%', '/%2e%2', 'a:', 'http://']) parseTarget(`/${unit.repeat(30000)}`, 'GET')
  })
})

describe('authority', () => {
  it('is a host with an optional port', () => {
    for (const text of ['shop', 'shop:80', 'shop:', 'SHOP.example.', '127.0.0.1:8080', '[::1]', '[::ffff:1.2.3.4]:80', 'a_b', 'a%41', "!$&'()*+,;=~"]) ok(isAuthority(text), text)
    for (const text of ['', ':80', 'a:b', 'a:123456', 'a b', 'a/b', 'u@h', 'a\\b', '[::1', '::1', '[g]', '[]', 'a?b', 'a#b', 'a,b:80:90', 'sh\u00f6p', 'a\tb']) ok(!isAuthority(text), text)
  })

  it('gives its host in lower case, without the port', () => {
    const table: [string, string][] = [['Shop.Example:80', 'shop.example'], ['shop', 'shop'], ['[::1]:80', '[::1]'], ['[::A]', '[::a]'], ['', ''], ['127.0.0.1:1', '127.0.0.1']]
    for (const [authority, host] of table) equal(hostOf(authority), host)
  })
})
