// The upstream where nginx is not installed. Argument: ports, comma-separated.
import { createServer } from 'node:http'
import { jsonOf, scenarios } from './scenarios.ts'

const small = Buffer.from(jsonOf(scenarios.get.responseBytes))
const bodies = new Map<string | undefined, Buffer>([scenarios.large, scenarios.download].map(({ path, responseBytes }) => [path, Buffer.from(jsonOf(responseBytes))]))

for (const port of (process.argv[2] ?? '').split(',')) {
  const server = createServer((request, response) => {
    const body = bodies.get(request.url) ?? small
    request.resume().on('end', () => {
      response.writeHead(200, ['content-type', 'application/json', 'content-length', String(body.length)])
      response.end(body)
    })
  })
  server.keepAliveTimeout = 300_000
  server.listen(Number(port), '127.0.0.1', 1024)
}
