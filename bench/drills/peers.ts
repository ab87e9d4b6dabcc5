import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { which, type Command } from '../children.ts'

/** Another proxy in a drill, as near to our defaults as its own options come. */
export interface NativePeer {
  name: string
  prepare: (folder: string, port: number, upstreams: readonly number[], retries: number) => Command
}

/** Writes a configuration; its path. */
function written (folder: string, name: string, text: string): string {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

/** Round robin, five failures within 15 s mark a server down for 15 s, 5 s to a response's head; a retry is one more server. */
const nginx: NativePeer = {
  name: 'nginx',
  prepare: (folder, port, upstreams, retries) => ({
    program: which('nginx') ?? 'nginx',
    args: ['-p', folder, '-e', 'stderr', '-c', written(folder, 'nginx.conf', `
worker_processes 1;
daemon off;
pid ${folder}/nginx.pid;
error_log stderr crit;
events { worker_connections 8192; }
http {
  access_log off;
  tcp_nodelay on;
  keepalive_timeout 300s;
  keepalive_requests 1000000000;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  upstream shop {
${upstreams.map(upstream => `    server 127.0.0.1:${upstream} max_fails=5 fail_timeout=15s;`).join('\n')}
    keepalive 128;
  }
  server {
    listen 127.0.0.1:${port} backlog=1024;
    location / {
      proxy_pass http://shop;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_connect_timeout 2s;
      proxy_read_timeout 5s;
      ${retries > 0 ? `proxy_next_upstream error timeout http_502 http_503 http_504;\n      proxy_next_upstream_tries ${retries + 1};` : 'proxy_next_upstream off;'}
    }
  }
}
`)]
  })
}

/** Round robin, health checks every 5 s, five failures mark a server down, 5 s to a response's head; a retry goes to another server. */
const haproxy: NativePeer = {
  name: 'haproxy',
  prepare: (folder, port, upstreams, retries) => ({
    program: which('haproxy') ?? 'haproxy',
    args: ['-db', '-f', written(folder, 'haproxy.cfg', `
global
  nbthread 1
  maxconn 8192
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 5s
  timeout http-keep-alive 300s
  retries ${retries}
  ${retries > 0 ? 'option redispatch 1\n  retry-on conn-failure empty-response response-timeout 502 503 504' : 'retry-on none'}
frontend edge
  bind 127.0.0.1:${port}
  default_backend shop
backend shop
  balance roundrobin
  http-reuse safe
  option httpchk GET /healthz
${upstreams.map((upstream, i) => `  server s${i} 127.0.0.1:${upstream} check inter 5s fall 1 rise 1 observe layer7 error-limit 5 on-error mark-down`).join('\n')}
`)]
  })
}

/** Those that are installed. */
export const nativePeers = (): NativePeer[] => [nginx, haproxy].filter(({ name }) => which(name) !== null)
