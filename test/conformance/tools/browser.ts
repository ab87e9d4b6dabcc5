import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocketServer } from 'ws'
import { startGateway } from '../../support/gateway.ts'
import type { Suite } from '../suite.ts'
import { run } from './program.ts'

/** What the page tries, one after the other; each reports itself. `wait.png` is answered when all have, and the page is loaded then. */
const script = `
const report = (name, what) => fetch('/report', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ name, what: String(what) }) })
const tries = {
  'fetch': async () => (await (await fetch('/echo?a=1')).text()),
  'fetch of a large answer': async () => (await (await fetch('/large')).arrayBuffer()).byteLength,
  'fetch with a body': async () => (await (await fetch('/echo', { method: 'PUT', body: 'x'.repeat(100000) })).text()),
  'fetch that streams': async () => {
    const reader = (await fetch('/stream')).body.getReader()
    let parts = 0
    for (;;) { const { done } = await reader.read(); if (done) return parts > 1; parts++ }
  },
  'fetch that is given up': async () => {
    const control = new AbortController()
    setTimeout(() => control.abort(), 50)
    try { await (await fetch('/never', { signal: control.signal })).text() } catch (error) { return error.name }
  },
  'forty fetches at once': async () => (await Promise.all(Array.from({ length: 40 }, (_, i) => fetch('/echo?' + i).then(r => r.status)))).every(s => s === 200),
  'form data': async () => { const form = new FormData(); form.append('f', new Blob(['abc']), 'f.txt'); return (await fetch('/echo', { method: 'POST', body: form })).status },
  'XMLHttpRequest': () => new Promise(done => { const x = new XMLHttpRequest(); x.open('GET', '/echo'); x.onload = () => done(x.status); x.send() }),
  'a cached answer asked for again': async () => { await (await fetch('/etag')).text(); return (await (await fetch('/etag', { cache: 'no-cache' })).text()) },
  'EventSource': () => new Promise(done => { const list = []; const source = new EventSource('/events'); source.onmessage = ({ data }) => { list.push(data); if (list.length === 3) { source.close(); done(list.join()) } } }),
  'EventSource that comes again': () => new Promise(done => { const source = new EventSource('/events-cut'); source.onmessage = ({ data, lastEventId }) => { if (data === 'again') { source.close(); done(lastEventId) } } }),
  'WebSocket': () => new Promise(done => { const socket = new WebSocket('ws://' + location.host + '/socket'); socket.onopen = () => socket.send('hello'); socket.onmessage = ({ data }) => { socket.close(4000, 'bye'); socket.onclose = ({ code }) => done(data + ' ' + code) } }),
  'sendBeacon': async () => navigator.sendBeacon('/echo', 'x')
}
for (const [name, attempt] of Object.entries(tries)) {
  try { await report(name, await attempt()) } catch (error) { await report(name, 'failed: ' + error) }
}
await fetch('/report', { method: 'POST', body: 'end' })
`
const page = `<!doctype html><title>page</title><img src="/wait.png"><script type="module">${script}</script>`

const expected: Record<string, RegExp> = {
  'fetch': /^GET \/echo\?a=1 0$/,
  'fetch of a large answer': /^5000000$/,
  'fetch with a body': /^PUT \/echo 100000$/,
  'fetch that streams': /^true$/,
  'fetch that is given up': /^AbortError$/,
  'forty fetches at once': /^true$/,
  'form data': /^200$/,
  'XMLHttpRequest': /^200$/,
  'a cached answer asked for again': /^tagged$/,
  'EventSource': /^1,2,3$/,
  'EventSource that comes again': /^7$/,
  'WebSocket': /^hello 4000$/,
  'sendBeacon': /^true$/
}

export const browser: Suite = {
  name: 'browser',
  about: 'a page in Chromium: fetch, streams, EventSource, WebSocket, through the gateway',
  needs: ['chromium'],
  quick: false,
  async run (report) {
    const told = new Map<string, string>()
    let waiting: ServerResponse | null = null
    const routes: Record<string, (request: IncomingMessage, response: ServerResponse, body: Buffer) => unknown> = {
      '/': (_request, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(page),
      '/wait.png': (_request, response) => { waiting = response },
      '/report': (_request, response, body) => {
        response.end()
        if (body.toString() === 'end') return void waiting?.writeHead(204).end()
        const { name, what } = JSON.parse(body.toString()) as { name: string, what: string }
        told.set(name, what)
      },
      '/large': (_request, response) => response.end(Buffer.alloc(5_000_000)),
      '/stream': (_request, response) => { response.write('a'); setTimeout(() => response.write('b'), 30); setTimeout(() => response.end('c'), 60) },
      '/never': (_request, response) => response.write('a'),
      '/etag': (request, response) => request.headers['if-none-match'] === '"t"' ? response.writeHead(304, { etag: '"t"' }).end() : response.writeHead(200, { etag: '"t"' }).end('tagged'),
      '/events': (_request, response) => { response.writeHead(200, { 'content-type': 'text/event-stream' }); for (const i of [1, 2, 3]) setTimeout(() => response.write(`data: ${i}\n\n`), 20 * i) },
      '/events-cut': (request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.end(request.headers['last-event-id'] === '7' ? 'data: again\n\n' : 'retry: 10\nid: 7\ndata: first\n\n')
      }
    }
    const server = createServer((request, response) => {
      const parts: Buffer[] = []
      request.on('data', (bytes: Buffer) => { parts.push(bytes) })
      request.on('end', () => {
        const body = Buffer.concat(parts)
        const route = routes[(request.url ?? '').split('?')[0] ?? '']
        if (route !== undefined) route(request, response, body)
        else response.end(`${request.method} ${request.url} ${body.length}`)
      })
    })
    const sockets = new WebSocketServer({ server, path: '/socket' })
    sockets.on('connection', (socket) => { socket.on('message', (data) => { socket.send(String(data)) }).on('error', () => {}) })
    await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
    report.after(() => {
      server.closeAllConnections()
      server.close()
    })
    const gateway = await startGateway(report, { upstreams: [`http://127.0.0.1:${(server.address() as AddressInfo).port}`], pool: { timeouts: { totalMs: 0, headersMs: 60_000 } } })
    const folder = mkdtempSync(join(tmpdir(), 'breakwater-chromium-'))
    report.after(() => { rmSync(folder, { recursive: true, force: true, maxRetries: 5 }) })
    const args = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-extensions', '--no-first-run', '--disable-background-networking', `--user-data-dir=${folder}`]
    const { output, errors } = await run('chromium', [...args, '--dump-dom', `http://127.0.0.1:${gateway.port}/`], { timeoutMs: 90_000 })
    await report.check('the page is loaded', () => { assert.match(output, /<title>page<\/title>/, errors.slice(-500)) })
    for (const [name, what] of Object.entries(expected)) await report.check(name, () => { assert.match(told.get(name) ?? 'nothing was reported', what) })
    await report.check('nothing is left', () => gateway.idle())
  }
}
