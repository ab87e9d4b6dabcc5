import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { built, which, type Child, type Workshop } from './children.ts'
import { jsonOf, scenarios } from './scenarios.ts'

/**
 * nginx as the server behind every proxy: it needs a fraction of any proxy's time, so that it is never what is measured.
 * One process; all ports answer alike.
 */
const nginxConfig = (folder: string, ports: readonly number[]): string => `
worker_processes 1;
daemon off;
pid ${folder}/nginx.pid;
error_log stderr error;
events { worker_connections 4096; }
http {
  access_log off;
  default_type application/json;
  sendfile on;
  tcp_nopush on;
  tcp_nodelay on;
  keepalive_timeout 300s;
  keepalive_requests 1000000000;
  open_file_cache max=8;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  server {
${ports.map(port => `    listen 127.0.0.1:${port} backlog=1024;`).join('\n')}
    location / { return 200 '${jsonOf(scenarios.get.responseBytes)}'; }
    location = /healthz { return 200 '{"ok":true}'; }
    location = /large { alias ${folder}/large.json; }
    location = /download { alias ${folder}/download.json; }
    # All of the body is read, into memory, before it is answered.
    location = /upload {
      client_max_body_size 0;
      client_body_buffer_size ${scenarios.upload.requestBytes + 4096};
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_http_version 1.1;
      proxy_pass http://127.0.0.1:${ports[0]}/;
    }
  }
}
`

/** Starts the upstream on all of `ports`: nginx when it is installed, else a small Node server. */
export function startUpstream (workshop: Workshop, ports: readonly number[]): { child: Child, title: string } {
  const nginx = which('nginx')
  if (nginx === null) {
    const child = workshop.start('upstream', { program: process.execPath, args: [built('bench/upstream-server.js'), ports.join(',')] })
    return { child, title: 'node:http' }
  }
  const folder = workshop.place('upstream')
  const config = join(folder, 'nginx.conf')
  writeFileSync(join(folder, 'large.json'), jsonOf(scenarios.large.responseBytes))
  writeFileSync(join(folder, 'download.json'), jsonOf(scenarios.download.responseBytes))
  writeFileSync(config, nginxConfig(folder, ports))
  const child = workshop.start('upstream', { program: nginx, args: ['-p', folder, '-e', 'stderr', '-c', config] })
  return { child, title: 'nginx' }
}
