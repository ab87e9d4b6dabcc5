// The upstream of bench/idle.ts. Argument: its port. It switches to a WebSocket, or begins an event stream, and then says nothing.
import { createServer } from 'node:http'

const server = createServer((request, response) => {
  if (request.url === '/events') response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
  else response.end('ok')
})
server.on('upgrade', (_request, socket) => {
  socket.on('error', () => {})
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n')
  socket.resume()
})
server.listen(Number(process.argv[2]), '127.0.0.1', 4096)
