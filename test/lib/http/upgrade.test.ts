import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { isWebSocketHandshake, switchesToWebSocket } from '../../../lib/http/upgrade.ts'

test('only a GET by HTTP/1.1 for a WebSocket alone, without a body, is a handshake', () => {
  const asked = { method: 'GET', httpVersion: '1.1', headers: { upgrade: 'websocket' } }
  equal(isWebSocketHandshake(asked), true)
  equal(isWebSocketHandshake({ ...asked, headers: { 'upgrade': 'WebSocket', 'content-length': '0' } }), true)
  equal(isWebSocketHandshake({ ...asked, method: 'POST' }), false)
  equal(isWebSocketHandshake({ ...asked, httpVersion: '1.0' }), false)
  for (const headers of [{}, { upgrade: 'h2c' }, { upgrade: 'websocket, h2c' }, { 'upgrade': 'websocket', 'content-length': '1' }, { 'upgrade': 'websocket', 'transfer-encoding': 'chunked' }]) {
    equal(isWebSocketHandshake({ ...asked, headers }), false)
  }
})

test('only a 101 that names the WebSocket, once and alone, switches to it', () => {
  const nameOf = (name: Buffer): string => name.toString().toLowerCase()
  const switches = (...fields: string[]): boolean => switchesToWebSocket(fields.map((text) => Buffer.from(text)), nameOf)
  equal(switches('Connection', 'Upgrade', 'Upgrade', 'WebSocket '), true)
  equal(switches('Connection', 'Upgrade'), false)
  equal(switches('Upgrade', 'h2c'), false)
  equal(switches('Upgrade', 'websocket', 'upgrade', 'websocket'), false)
})
