// The upstream where nginx is not installed. Argument: ports, comma-separated.
import { createServer } from 'node:http'
import { jsonOf, scenarios } from './scenarios.ts'

const small = Buffer.from(jsonOf(scenarios.get.responseBytes))
const large = Buffer.from(jsonOf(scenarios.large.responseBytes))

for (const port of (process.argv[2] ?? '').split(',')) {
  const server = createServer((request, response) => {
    request.resume()
    const body = request.url === scenarios.large.path ? large : small
    response.writeHead(200, ['content-type', 'application/json', 'content-length', String(body.length)])
    response.end(body)
  })
  server.keepAliveTimeout = 300_000
  server.listen(Number(port), '127.0.0.1', 1024)
}
