import { createHash } from 'node:crypto'
import { readFile, readdir } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'

/** The page as it lies in the package: it is served as it is. */
const webFolder = fileURLToPath(new URL('../../../web/', import.meta.url))

/** Of the charts' package, which is served as it is installed. */
const uplotFiles = ['uPlot.iife.min.js', 'uPlot.min.css']

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8'
}

/** Nothing of another origin, nothing inline, and nobody may frame it. */
const pageFields = {
  'content-security-policy': "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  // Kept, but asked for again each time: another version of the proxy has another page.
  'cache-control': 'no-cache'
}

interface File { readonly body: Buffer, readonly etag: string, readonly type: string }

async function fileAt (path: string): Promise<File> {
  const body = await readFile(path)
  return { body, etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`, type: types[extname(path)] ?? 'application/octet-stream' }
}

/**
 * GET / and /page/*: the files of the admin page. They are the same everywhere and hold nothing of what is shown, so that they need no
 * token: a browser could not send it with them. What the page shows it asks the other routes for.
 * @throws where a file of the package cannot be read
 */
export async function pageRoutes (app: FastifyInstance): Promise<void> {
  const names = (await readdir(webFolder)).filter((name) => extname(name) in types)
  const uplot = createRequire(import.meta.url).resolve('uplot/package.json')
  const paths = [...names.map((name) => [name, join(webFolder, name)] as const), ...uplotFiles.map((name) => [name, join(uplot, '../dist', name)] as const)]
  const files = new Map(await Promise.all(paths.map(async ([name, path]) => [name, await fileAt(path)] as const)))

  const serve = (url: string, file: File, schema: object): void => {
    app.route({ method: 'GET', url, exposeHeadRoute: true, schema, handler: async (request, reply) => sendFile(request, reply, file) })
  }
  const index = files.get('index.html') as File
  files.delete('index.html')
  serve('/', index, { summary: 'The admin page', produces: ['text/html'], response: { 200: Type.String({ description: 'Its other files lie beside it, below `page/`.' }) } })
  for (const [name, file] of files) serve(`/page/${name}`, file, { hide: true })
}

function sendFile (request: FastifyRequest, reply: FastifyReply, { body, etag, type }: File): Buffer | null {
  const { url, headers } = request.raw
  reply.headers(pageFields)
  const path = (url ?? '/').split('?')[0] as string
  // Its links are relative, so that it may lie below any prefix: its own path has to end in a slash.
  if (type === types['.html'] && !path.endsWith('/')) {
    reply.code(308).header('location', `./${path.slice(path.lastIndexOf('/') + 1)}/`)
    return null
  }
  reply.header('etag', etag)
  if (headers['if-none-match']?.split(',').some((each) => each.trim().replace(/^W\//, '') === etag) === true) {
    reply.code(304)
    return null
  }
  reply.type(type)
  return body
}
