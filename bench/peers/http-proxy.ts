// The peer "http-proxy". Arguments: PORT URL...
import { Agent, createServer, ServerResponse } from 'node:http'
import httpProxy from 'http-proxy'

const [port, ...upstreams] = process.argv.slice(2)
let next = 0

const proxy = httpProxy.createProxyServer({ agent: new Agent({ keepAlive: true }) })
proxy.on('error', (_error, _request, response) => {
  if (response instanceof ServerResponse && !response.headersSent) response.writeHead(502).end()
  else response.destroy()
})

createServer((request, response) => {
  proxy.web(request, response, { target: upstreams[next++ % upstreams.length] as string })
}).listen(Number(port), '127.0.0.1')
