/** The OpenAPI document of the admin routes: kept in docs/, served by the listener, and about its routes alone. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import Fastify from 'fastify'
import breakwater from '../../breakwater.ts'
import { openApiPage } from '../../docs/openapi.ts'
import adminRoutes from '../../routes/admin/index.ts'
import { shipped } from '../config/support.ts'

interface Operation { summary?: string, operationId: string, parameters?: Array<{ name: string, in: string }>, security?: unknown[], responses: Record<string, { content?: Record<string, unknown> }> }
interface Document { openapi: string, servers: unknown, paths: Record<string, Record<string, Operation>>, components: { schemas: Record<string, object> } }

const kept = JSON.parse(readFileSync(shipped('docs/openapi.json'), 'utf8')) as Document
const operations = Object.entries(kept.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method, operation })))

test('docs/openapi.json is what npm run docs would write', async () => {
  equal(readFileSync(shipped('docs/openapi.json'), 'utf8'), await openApiPage(), 'docs/openapi.json is stale: npm run docs')
})

test('it is a valid OpenAPI 3.1 document, and its schemas are JSON Schema 2020-12', async () => {
  const { valid, errors } = await new Validator().validate({ ...structuredClone(kept) })
  ok(valid, JSON.stringify(errors))
  equal(kept.openapi, '3.1.0')
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: 'doc', ...kept })
  for (const name of Object.keys(kept.components.schemas)) ok(ajv.getSchema(`doc#/components/schemas/${name}`) !== undefined, name)
})

test('every operation has a summary, an id of its own, each parameter of its path and a good answer', () => {
  ok(operations.length > 20)
  equal(new Set(operations.map(({ operation }) => operation.operationId)).size, operations.length)
  for (const { path, method, operation } of operations) {
    const name = `${method} ${path}`
    ok(operation.summary !== undefined, `${name} has no summary`)
    const inPath = (operation.parameters ?? []).filter((each) => each.in === 'path').map((each) => each.name)
    deepEqual(inPath.toSorted(), [...path.matchAll(/\{(\w+)\}/g)].map(([, each]) => each).toSorted(), name)
    ok(Object.keys(operation.responses).some((status) => status.startsWith('2')), name)
  }
})

test('a record can be had as JSON and as text, and the document says what each is', () => {
  const { content } = kept.paths['/requests/{requestId}']?.['get']?.responses['200'] ?? {}
  deepEqual(Object.keys(content ?? {}), ['application/json', 'text/plain'])
  deepEqual(content?.['text/plain'], { schema: { type: 'string' } })
})

test('only the probes are told to be free where a token is configured', () => {
  deepEqual(operations.filter(({ operation }) => operation.security?.length === 0).map(({ path }) => path), ['/livez', '/readyz'])
})

test('the document of a running listener has each of its routes and no other, below its prefix', async (t) => {
  const app = Fastify()
  t.after(() => app.close())
  await app.register(breakwater, { admin: { enabled: false }, pools: { shop: { upstreams: [{ url: 'http://127.0.0.1:9' }], health: { enabled: false } } } })
  await app.ready()
  const admin = Fastify()
  t.after(() => admin.close())
  const served = new Set<string>()
  admin.addHook('onRoute', ({ method, routePath, schema }) => {
    if ((schema as { hide?: boolean } | undefined)?.hide !== true) for (const each of [method].flat()) if (each !== 'HEAD') served.add(`${each.toLowerCase()} ${routePath === '' ? '/' : routePath}`)
  })
  await admin.register(adminRoutes, { prefix: '/ops', source: app, loopbackOnly: true, config: {} })
  const response = await admin.inject({ url: '/ops/openapi.json', headers: { host: 'localhost' } })
  equal(response.statusCode, 200)
  const document = response.json<Document>()
  deepEqual(document.servers, [{ url: '/ops' }])
  const told = Object.entries(document.paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`))
  deepEqual(told.toSorted(), [...served].toSorted())
})

test('what the routes answer is as the document describes it', async (t) => {
  const app = Fastify()
  t.after(() => app.close())
  await app.register(breakwater, { admin: { enabled: false }, pools: { shop: { upstreams: [{ url: 'http://127.0.0.1:9' }], health: { enabled: false } } } })
  await app.ready()
  const admin = Fastify()
  t.after(() => admin.close())
  await admin.register(adminRoutes, { source: app, loopbackOnly: true, config: {} })
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: 'doc', ...kept })
  for (const { path, method, operation } of operations) {
    const json = operation.responses['200']?.content?.['application/json'] as { schema: { $ref?: string } } | undefined
    if (method !== 'get' || path.includes('{') || json?.schema.$ref === undefined || path === '/routes/match') continue
    const response = await admin.inject({ url: path, headers: { host: 'localhost' } })
    equal(response.statusCode, 200, path)
    const validate = ajv.getSchema(`doc${json.schema.$ref}`)
    ok(validate?.(response.json()), `${path}: ${JSON.stringify(validate?.errors)}`)
  }
})
