import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { Agent, request as ask } from 'undici'

export interface NamedUpstream {
  readonly url: string
  readonly id: string
  /** Requests that came, health checks aside. */
  readonly count: number
  healthy: boolean
  /** Answers a health check. */
  check: (response: ServerResponse) => void
  handle: (request: IncomingMessage, response: ServerResponse) => void
}

/** A server that answers with its name, and its health as it is told. */
export async function named (t: TestContext, name: string): Promise<NamedUpstream> {
  let count = 0
  const self = {
    url: '', id: '', get count () { return count }, healthy: true,
    check: (response: ServerResponse): void => { response.writeHead(self.healthy ? 204 : 503).end() },
    handle: (_request: IncomingMessage, response: ServerResponse): void => { response.end(name) }
  }
  const server = createServer((request, response) => {
    request.resume()
    if (request.url === '/healthz') {
      self.check(response)
    } else {
      count++
      self.handle(request, response)
    }
  })
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => { server.once('listening', resolve) })
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  self.id = `127.0.0.1:${(server.address() as AddressInfo).port}`
  self.url = `http://${self.id}`
  return self
}

/** Status and body of a GET, over connections that are kept. */
export function client (t: TestContext, port: number): (path?: string, headers?: Record<string, string>) => Promise<{ status: number, text: string, headers: Record<string, unknown> }> {
  const dispatcher = new Agent({ connections: 64 })
  t.after(() => dispatcher.destroy())
  return async (path = '/', headers = {}) => {
    const { statusCode, body, headers: got } = await ask(`http://127.0.0.1:${port}${path}`, { dispatcher, headers })
    return { status: statusCode, text: await body.text(), headers: got }
  }
}

export const quick = { intervalMs: 20, timeoutMs: 1000 }
