import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { parsePreface } from '../../../lib/http/preface.ts'

const whole = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

test('a connection that begins with the preface speaks HTTP/2, and is told by no less', () => {
  for (let length = 0; length < whole.length; length++) equal(parsePreface(whole.subarray(0, length)), 'more', `${length} bytes`)
  equal(parsePreface(whole), true)
  equal(parsePreface(Buffer.concat([whole, Buffer.alloc(9)])), true)
})

test('any other byte tells HTTP/1', () => {
  for (const text of ['GET / HTTP/1.1\r\n', 'POST / HTTP/1.1\r\n', 'PRI * HTTP/1.1\r\n', 'PRI * HTTP/2.0\r\n\r\nGET', 'pri', '\0']) equal(parsePreface(Buffer.from(text)), false, text)
  for (let index = 0; index < whole.length; index++) {
    const bytes = Buffer.from(whole.subarray(0, index + 1))
    bytes[index]! ^= 1
    equal(parsePreface(bytes), false, `byte ${index}`)
  }
})
