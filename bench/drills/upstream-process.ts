// An upstream of the drills. Argument: the first UpstreamScript as JSON, with `port`, `record` (a file) and `seed`.
import { openSync, writeSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { seededRandom } from '../../lib/random.ts'
import { machineNow } from '../../bin/load/clock.ts'
import { controlPath, type UpstreamScript } from './upstream.ts'

const { port, record, seed, ...first } = JSON.parse(process.argv[2] ?? '') as UpstreamScript & { port: number, record: string, seed: number }
const script: UpstreamScript = first
const random = seededRandom(seed)
const file = openSync(record, 'a')
const answer = Buffer.from(`{"port":${port},"pad":"${'x'.repeat(70)}"}`)
let served = 0

/** Written at once and not gathered: it must be there when this process is killed in the next moment. */
const note = (sign: '!' | '*' | '+' | '-', id = ''): void => { writeSync(file, `${sign} ${machineNow().toFixed(3)} ${id}\n`) }

function control (request: IncomingMessage, response: ServerResponse): void {
  let text = ''
  request.on('data', (piece: Buffer) => { text += piece.toString() })
  request.on('end', () => {
    Object.assign(script, JSON.parse(text))
    response.end()
  })
}

function serve (request: IncomingMessage, response: ServerResponse): void {
  if (request.url === controlPath) return control(request, response)
  request.resume()
  if (request.url === '/healthz') {
    response.end('ok')
    return
  }
  const id = String(request.headers['x-drill-id'])
  note('+', id)
  served++
  if (script.wedged) return
  const reset = script.resetEvery > 0 && served % script.resetEvery === 0
  const send = (): void => {
    note('-', id)
    if (response.destroyed) return
    if (reset) {
      request.socket.resetAndDestroy()
      return
    }
    response.writeHead(script.status, ['content-type', 'application/json', 'content-length', String(answer.length)])
    response.end(answer)
  }
  // The body first, as a service would read it.
  const ms = script.delayMs + random() * script.jitterMs
  const later = (): void => { if (ms > 0) setTimeout(send, ms); else send() }
  if (request.complete) later()
  else request.once('end', later)
}

const server = createServer({ keepAliveTimeout: 60_000, requestTimeout: 0 }, serve)
note('!')
server.on('connection', () => note('*'))
server.listen(port, '127.0.0.1', 1024)
