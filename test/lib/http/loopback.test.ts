import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isLoopbackAuthority } from '../../../lib/http/loopback.ts'

test('authorities that no name server has a say in', () => {
  for (const authority of ['localhost', 'LOCALHOST:9090', '127.0.0.1', '127.0.0.1:9090', '[::1]', '[::1]:9090']) assert.ok(isLoopbackAuthority(authority), authority)
  for (const authority of ['', ':9090', 'evil.example', 'localhost.evil.example:9090', '127.0.0.1.evil.example', '10.0.0.1:9090', '[::]:9090', '[', 'localhost@evil.example']) {
    assert.ok(!isLoopbackAuthority(authority), authority)
  }
})
