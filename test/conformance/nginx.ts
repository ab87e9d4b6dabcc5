import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../support/wait.ts'

/** A port that was free a moment ago: nginx cannot choose one itself. */
async function freePort (): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

function listens (port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.on('connect', () => { socket.destroy(); resolve(true) }).on('error', () => { resolve(false) })
  })
}

/** As a proxy that passes on all it can: nothing is dropped for its name, merged or rewritten that can be left alone. */
const configuration = (port: number, upstream: string): string => `
worker_processes 1;
pid nginx.pid;
error_log /dev/null crit;
daemon off;
master_process off;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp;
  client_header_timeout 1s;
  client_body_timeout 1s;
  lingering_timeout 200ms;
  underscores_in_headers on;
  ignore_invalid_headers off;
  merge_slashes off;
  large_client_header_buffers 4 64k;
  upstream behind { server ${upstream}; keepalive 8; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://behind;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Connection "";
    }
  }
}
`

/** Starts nginx in front of an upstream (host:port), and gives its port. */
export async function startNginx (t: { after (cleanup: () => unknown): void }, upstream: string): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'breakwater-nginx-'))
  t.after(() => { rmSync(folder, { recursive: true, force: true }) })
  mkdirSync(join(folder, 'tmp'))
  const port = await freePort()
  writeFileSync(join(folder, 'nginx.conf'), configuration(port, upstream))
  const nginx = spawn('nginx', ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr'], { stdio: ['ignore', 'ignore', 'pipe'] })
  const errors: string[] = []
  nginx.stderr.setEncoding('utf8').on('data', (text: string) => { errors.push(text) })
  const ended = once(nginx, 'exit')
  t.after(async () => {
    nginx.kill('SIGTERM')
    await ended
  })
  await until(() => {
    if (nginx.exitCode !== null) throw new Error(`nginx did not start: ${errors.join('')}`)
    return listens(port)
  }, { what: 'nginx', timeoutMs: 10_000, intervalMs: 20 })
  return port
}
