/** An upstream for real clients: what they ask for is in the path. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'

export interface Shop {
  readonly port: number
  readonly url: string
  /** Method, target and body length of each request that was read whole. */
  readonly served: string[]
}

const large = Buffer.alloc(5_000_000, 'x')
const text = 'abcdefghijklmnopqrstuvwxyz'

function answer (request: IncomingMessage, response: ServerResponse, body: Buffer, tries: Map<string, number>): void {
  const path = (request.url ?? '').split('?')[0] ?? ''
  if (path === '/gzip') {
    response.writeHead(200, { 'content-type': 'text/plain', 'content-encoding': 'gzip' }).end(gzipSync(text.repeat(100)))
  } else if (path === '/range') {
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? []
    if (from === undefined) return void response.writeHead(200, { 'accept-ranges': 'bytes', 'content-length': String(text.length) }).end(text)
    const part = text.slice(Number(from), to === '' || to === undefined ? undefined : Number(to) + 1)
    response.writeHead(206, { 'content-range': `bytes ${from}-${Number(from) + part.length - 1}/${text.length}` }).end(part)
  } else if (path.startsWith('/flaky')) {
    const times = (tries.get(path) ?? 0) + 1
    tries.set(path, times)
    response.writeHead(times < 3 ? 503 : 200, { 'retry-after': '0' }).end(`try ${times}`)
  } else if (path === '/moved') response.writeHead(302, { location: '/echo?moved' }).end()
  else if (path === '/chunks') {
    response.write('one ')
    setTimeout(() => { response.end('two') }, 5)
  } else if (path === '/large') response.writeHead(200, { 'content-length': '5000000' }).end(large)
  else if (path === '/close') response.writeHead(200, { connection: 'close' }).end('closed')
  else if (path === '/early') response.writeHead(103, { link: '</a.css>; rel=preload' })
  else if (path === '/empty') response.writeHead(204).end()
  else response.writeHead(200, { 'content-type': 'application/json', 'x-method': request.method }).end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, length: body.length, body: body.toString('latin1').slice(0, 1000) }))
}

export async function shop (t: { after (cleanup: () => unknown): void }, more?: (request: IncomingMessage, response: ServerResponse) => boolean): Promise<Shop> {
  const served: string[] = []
  const tries = new Map<string, number>()
  const server = createServer((request, response) => {
    if (more?.(request, response) === true) return
    const parts: Buffer[] = []
    request.on('data', (bytes: Buffer) => { parts.push(bytes) })
    request.on('end', () => {
      const body = Buffer.concat(parts)
      served.push(`${request.method} ${request.url} ${body.length}`)
      answer(request, response, body, tries)
    })
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { port, url: `http://127.0.0.1:${port}`, served }
}
