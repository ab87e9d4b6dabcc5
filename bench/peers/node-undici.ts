// The peer "node-undici": the least that a correct streaming proxy on node:http and undici has to do. Arguments: PORT URL...
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Pool, type Dispatcher } from 'undici'

const [port, ...upstreams] = process.argv.slice(2)
const pools = upstreams.map(url => new Pool(url))
let next = 0

const hopByHop = new Set(['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'expect'])

function endToEnd (raw: readonly (string | Buffer)[]): string[] {
  const fields: string[] = []
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] as string | Buffer).toString('latin1')
    if (!hopByHop.has(name.toLowerCase())) fields.push(name, (raw[i + 1] as string | Buffer).toString('latin1'))
  }
  return fields
}

class Exchange implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse
  #abort: ((error?: Error) => void) | null = null
  #resume: (() => void) | null = null
  #done = false

  constructor (response: ServerResponse) {
    this.#response = response
    response.on('close', () => {
      if (!this.#done) this.#abort?.(new Error('the client left'))
    })
  }

  onConnect (abort: (error?: Error) => void): void {
    if (this.#response.destroyed) abort(new Error('the client left'))
    else this.#abort = abort
  }

  onHeaders (status: number, headers: Buffer[], resume: () => void): boolean {
    if (status < 200) return true
    this.#resume = resume
    this.#response.writeHead(status, endToEnd(headers))
    return true
  }

  onData (chunk: Buffer): boolean {
    if (this.#response.write(chunk)) return true
    this.#response.once('drain', this.#resume as () => void)
    return false
  }

  onComplete (): void {
    this.#done = true
    this.#response.end()
  }

  onError (): void {
    this.#done = true
    if (this.#response.headersSent) this.#response.destroy()
    else this.#response.writeHead(502).end()
  }
}

createServer((request: IncomingMessage, response: ServerResponse) => {
  const pool = pools[next++ % pools.length] as Pool
  const hasBody = request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined
  pool.dispatch({
    path: request.url as string,
    method: request.method as Dispatcher.HttpMethod,
    headers: endToEnd(request.rawHeaders),
    body: hasBody ? request : null
  }, new Exchange(response))
}).listen(Number(port), '127.0.0.1')
