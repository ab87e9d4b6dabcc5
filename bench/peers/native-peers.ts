import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot, versionOf, which } from '../children.ts'
import { urls, type Peer } from './peer.ts'

const needs = (program: string) => (): string | null => which(program) === null ? `${program} is not installed` : null
const pathOf = (program: string): string => which(program) ?? program
const endpoints = (ports: readonly number[]): string[] => ports.map(port => `127.0.0.1:${port}`)

/** Writes a configuration into the peer's folder; its path. */
function written (folder: string, name: string, text: string): string {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

export const nginx: Peer = {
  name: 'nginx',
  features: 'one worker, access log, passive failure marks, round robin',
  missing: needs('nginx'),
  version: () => versionOf(pathOf('nginx'), '-v'),
  prepare: ({ port, upstreams, folder }) => ({
    program: pathOf('nginx'),
    args: ['-p', folder, '-e', 'stderr', '-c', written(folder, 'nginx.conf', `
worker_processes 1;
daemon off;
pid ${folder}/nginx.pid;
error_log stderr error;
events { worker_connections 4096; }
http {
  access_log /dev/null combined;
  tcp_nodelay on;
  keepalive_timeout 300s;
  keepalive_requests 1000000000;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  upstream shop {
${endpoints(upstreams).map(endpoint => `    server ${endpoint} max_fails=5 fail_timeout=15s;`).join('\n')}
    keepalive 128;
    keepalive_requests 1000000000;
  }
  server {
    listen 127.0.0.1:${port} backlog=1024;
    location / {
      proxy_pass http://shop;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_next_upstream off;
      proxy_connect_timeout 2s;
      proxy_read_timeout 30s;
    }
  }
}
`)]
  })
}

export const haproxy: Peer = {
  name: 'haproxy',
  features: 'one thread, access log, health checks, passive failure marks, round robin',
  missing: needs('haproxy'),
  version: () => versionOf(pathOf('haproxy'), '-v'),
  prepare: ({ port, upstreams, folder }) => ({
    program: pathOf('haproxy'),
    args: ['-db', '-f', written(folder, 'haproxy.cfg', `
global
  nbthread 1
  maxconn 4096
  log stdout format raw daemon
defaults
  mode http
  log global
  option httplog
  option forwardfor
  timeout connect 2s
  timeout client 60s
  timeout server 30s
  timeout http-keep-alive 300s
frontend edge
  bind 127.0.0.1:${port}
  default_backend shop
backend shop
  balance roundrobin
  http-reuse always
  option httpchk GET /healthz
${endpoints(upstreams).map((endpoint, i) => `  server s${i} ${endpoint} maxconn 256 check inter 5s observe layer7 error-limit 5 on-error mark-down`).join('\n')}
`)]
  })
}

export const caddy: Peer = {
  name: 'caddy',
  features: 'GOMAXPROCS=1, access log, health checks, passive failure marks, round robin',
  missing: needs('caddy'),
  version: () => `caddy ${versionOf(pathOf('caddy'), 'version')}`,
  prepare: ({ port, upstreams, folder }) => ({
    program: pathOf('caddy'),
    args: ['run', '--adapter', 'caddyfile', '--config', written(folder, 'Caddyfile', `
{
  admin off
  auto_https off
  log {
    output stderr
    level ERROR
    exclude http.log.access
  }
}
http://127.0.0.1:${port} {
  bind 127.0.0.1
  log {
    output stdout
    format json
  }
  reverse_proxy ${endpoints(upstreams).join(' ')} {
    lb_policy round_robin
    health_uri /healthz
    health_interval 5s
    health_timeout 1s
    max_fails 5
    fail_duration 15s
    unhealthy_request_count 256
    transport http {
      dial_timeout 2s
      response_header_timeout 5s
      keepalive_idle_conns_per_host 128
    }
  }
}
`)],
    env: { GOMAXPROCS: '1', HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  })
}

/** `go build` of the one file, which uses nothing but Go's standard library; the network is never asked. */
function build (source: string, binary: string, signal: AbortSignal): Promise<void> {
  const env = { ...process.env, CGO_ENABLED: '0', GO111MODULE: 'auto', GOFLAGS: '-mod=mod', GOPROXY: 'off', GOTOOLCHAIN: 'local' }
  return new Promise((resolve, reject) => {
    const child = spawn(pathOf('go'), ['build', '-o', binary, source], { env, stdio: ['ignore', 'ignore', 'inherit'], timeout: 180_000, signal })
    child.once('error', reject)
    child.once('exit', code => code === 0 ? resolve() : reject(new Error(`go build failed: ${code}`)))
  })
}

const goPeer = (name: string, threads: string, env: Record<string, string>): Peer => ({
  name,
  features: `${threads}, httputil.ReverseProxy with access log, breaker, health checks, gate, counters, deadline, header hygiene, round robin`,
  missing: needs('go'),
  version: () => versionOf(pathOf('go'), 'version'),
  prepare: async ({ port, upstreams, folder, signal }) => {
    const binary = join(folder, 'proxy')
    await build(join(packageRoot(), 'bench', 'peers', 'go', 'main.go'), binary, signal)
    return { program: binary, args: [String(port), ...urls(upstreams)], env }
  }
})

/** As Go starts by itself: a thread for every core. */
export const go = goPeer('go-httputil', 'all cores', {})
/** On one thread, as our own process is: Go's best case for CPU a request. */
export const goOneThread = goPeer('go-httputil-1', 'GOMAXPROCS=1', { GOMAXPROCS: '1' })
