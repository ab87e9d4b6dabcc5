import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { certificateNames, NameTable, serverName } from '../../lib/tls-names.ts'

test('names of hosts are told from everything else', () => {
  for (const name of ['example.com', 'localhost', '*.example.com', 'a-b.example', 'xn--bcher-kva.example', '_acme.example.com', '1.example']) equal(serverName(name), name)
  equal(serverName('EXAMPLE.com.'), 'example.com')
  for (const text of ['', '.', '*', '*.', 'a..b', '.a', 'a b', '-a', 'a-', 'a.*.b', '*a.b', 'a*', '*.*.b', 'a/b', 'ä.example', '[::1]', `${'a'.repeat(254)}`]) equal(serverName(text), null, text)
})

test('the names of a certificate are its DNS names, once each', () => {
  deepEqual(certificateNames(undefined), [])
  deepEqual(certificateNames('DNS:a.example, DNS:*.B.example, IP Address:10.0.0.1, email:x@c.example, DNS:a.example'), ['a.example', '*.b.example'])
  deepEqual(certificateNames('DNS:"a.example, DNS:b.example"'), [], 'a name with a comma in it is quoted, and is none')
})

test('an exact name goes before a wildcard, which is for one label', () => {
  const table = new NameTable<string>()
  table.add(['*.example.com', 'www.example.com'], 'first')
  table.add(['www.example.com', 'api.example.com', 'example.com'], 'second')
  const expected: [string, string | undefined][] = [
    ['www.example.com', 'first'], ['api.example.com', 'second'], ['API.Example.Com.', 'second'], ['example.com', 'second'],
    ['other.example.com', 'first'], ['a.b.example.com', undefined], ['.example.com', undefined], ['*.example.com', undefined], ['', undefined], ['com', undefined]
  ]
  for (const [asked, found] of expected) equal(table.find(asked), found, asked)
})

test('whatever is asked for, only names of the table are found', () => {
  const table = new NameTable<number>()
  table.add(['*.a.example', 'b.example'], 1)
  fc.assert(fc.property(fc.string(), (asked) => { equal(table.find(asked), undefined) }))
})
