import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { Client, credentials, Metadata, Server, ServerCredentials, status, type ServerDuplexStream, type ServerReadableStream, type ServerUnaryCall, type ServerWritableStream, type sendUnaryData, type ServiceError } from '@grpc/grpc-js'
import { certificate } from '../../config/certificate.ts'
import { startGateway, type Gateway } from '../../support/gateway.ts'
import { until, within } from '../../support/wait.ts'
import { Folder } from '../listener/support.ts'

const same = (bytes: Buffer): Buffer => bytes
const method = (name: string, requestStream: boolean, responseStream: boolean) => ({
  path: `/test.Echo/${name}`, requestStream, responseStream, requestSerialize: same, requestDeserialize: same, responseSerialize: same, responseDeserialize: same
})
const service = { Unary: method('Unary', false, false), Collect: method('Collect', true, false), Repeat: method('Repeat', false, true), Chat: method('Chat', true, true), Hang: method('Hang', false, false) }

/** Of the gateway, where calls come over TLS. */
const own = certificate({ name: 'shop.example', names: ['shop.example'] })

interface Setting { gateway: Gateway, client: Client, cancelled: () => number }

async function setting (t: TestContext, pool: Record<string, unknown> = {}, port?: number, tls = false): Promise<Setting> {
  let cancelled = 0
  const server = new Server({ 'grpc.max_receive_message_length': -1 })
  server.addService(service, {
    Unary (call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>) {
      const wanted = Number(call.metadata.get('x-fail')[0] ?? 0)
      const trailers = new Metadata()
      trailers.set('x-trailer', 'behind')
      if (wanted > 0) done({ code: wanted, details: 'as asked: caf\u00e9', metadata: trailers }, null)
      else done(null, call.request, trailers)
    },
    Collect (call: ServerReadableStream<Buffer, Buffer>, done: sendUnaryData<Buffer>) {
      let bytes = 0
      call.on('data', (piece: Buffer) => { bytes += piece.length }).on('end', () => { done(null, Buffer.from(String(bytes))) })
    },
    Repeat (call: ServerWritableStream<Buffer, Buffer>) {
      for (let i = 0; i < 50; i++) call.write(call.request)
      call.end()
    },
    Chat (call: ServerDuplexStream<Buffer, Buffer>) {
      call.on('data', (piece: Buffer) => call.write(Buffer.concat([Buffer.from('re:'), piece]))).on('end', () => { call.end() })
    },
    Hang (call: ServerUnaryCall<Buffer, Buffer>) { call.on('cancelled', () => { cancelled++ }) }
  })
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, found) => { if (error === null) resolve(found); else reject(error) })
  })
  t.after(() => { server.forceShutdown() })
  const gateway = await startGateway(t, { upstreams: [`http://127.0.0.1:${port ?? bound}`], pool: { http2: 'prior-knowledge', ...pool }, server: tls ? { tls: { certificates: [new Folder(t).pair('own', own)] } } : { http2: { cleartext: true } } })
  const client = new Client(`127.0.0.1:${gateway.port}`, tls ? credentials.createSsl(Buffer.from(own.cert)) : credentials.createInsecure(), { 'grpc.max_receive_message_length': -1, ...tls && { 'grpc.ssl_target_name_override': 'shop.example' } })
  t.after(() => { client.close() })
  return { gateway, client, cancelled: () => cancelled }
}

interface Result { value: Buffer | undefined, error: ServiceError | null, trailers: Metadata }

function unary (client: Client, name: string, message: Buffer, metadata = new Metadata(), options = {}): Promise<Result> {
  return within(new Promise((resolve) => {
    const found: Result = { value: undefined, error: null, trailers: new Metadata() }
    client.makeUnaryRequest(`/test.Echo/${name}`, same, same, message, metadata, options, (error, value) => { Object.assign(found, { error, value }) })
      .on('status', ({ metadata: trailers }) => {
        found.trailers = trailers
        setImmediate(() => { resolve(found) })
      })
  }), { what: 'the end of the call' })
}

describe('gRPC through the gateway', () => {
  it('unary: message, status and trailers', async (t) => {
    const { gateway, client } = await setting(t)
    const { value, error, trailers } = await unary(client, 'Unary', Buffer.from('hello'))
    assert.equal(error, null)
    assert.equal(value?.toString(), 'hello')
    assert.deepEqual(trailers.get('x-trailer'), ['behind'])
    await gateway.left({ counted: 'success', status: 200 })
  })

  it('an error of the service arrives as it was, and the breaker does not judge it', async (t) => {
    const { gateway, client } = await setting(t)
    const metadata = new Metadata()
    metadata.set('x-fail', '5')
    const { error, trailers } = await unary(client, 'Unary', Buffer.from('x'), metadata)
    assert.equal(error?.code, status.NOT_FOUND)
    assert.equal(error.details, 'as asked: caf\u00e9')
    assert.deepEqual(trailers.get('x-trailer'), ['behind'])
    await gateway.left({ counted: 'success', status: 200 })
  })

  it('a message of 8 MB passes both ways', async (t) => {
    const { client } = await setting(t)
    const big = Buffer.alloc(8 * 1024 * 1024, 'x')
    const { value } = await unary(client, 'Unary', big)
    assert.ok(value?.equals(big))
  })

  for (const tls of [false, true]) it(`streams of messages${tls ? ' over TLS' : ''}: from the client, from the server, and both at the same time; then a deadline, and a cancel`, async (t) => {
    const { gateway, client, cancelled } = await setting(t, {}, undefined, tls)
    assert.equal((await unary(client, 'Unary', Buffer.from('hello'))).value?.toString(), 'hello')
    const collected = await within(new Promise<string>((resolve, reject) => {
      const call = client.makeClientStreamRequest('/test.Echo/Collect', same, same, (error, value?: Buffer) => { if (error === null) resolve(String(value)); else reject(error) })
      for (let i = 0; i < 20; i++) call.write(Buffer.alloc(10000))
      call.end()
    }))
    assert.equal(collected, '200000')
    const repeated = await within(new Promise<number>((resolve, reject) => {
      let count = 0
      client.makeServerStreamRequest('/test.Echo/Repeat', same, same, Buffer.alloc(10000)).on('data', () => count++).on('end', () => { resolve(count) }).on('error', reject)
    }))
    assert.equal(repeated, 50)
    const call = client.makeBidiStreamRequest('/test.Echo/Chat', same, same)
    const heard: string[] = []
    call.on('data', (piece: Buffer) => { heard.push(piece.toString()) })
    for (const word of ['one', 'two', 'three']) {
      call.write(Buffer.from(word))
      // Each is answered while the call is open on both sides.
      await until(() => heard.includes(`re:${word}`))
    }
    const ended = new Promise((resolve) => { call.on('status', resolve) })
    call.end()
    assert.equal((await within(ended) as { code: number }).code, status.OK)
    await gateway.skip()
    const { error } = await unary(client, 'Hang', Buffer.from('x'), new Metadata(), { deadline: Date.now() + 200 })
    assert.equal(error?.code, status.DEADLINE_EXCEEDED)
    await until(() => cancelled() === 1)
    await gateway.left({ counted: 'neutral', status: 499, reason: 'client_cancelled' })
    const chat = client.makeBidiStreamRequest('/test.Echo/Chat', same, same)
    const over = new Promise<{ code: number }>((resolve) => { chat.on('status', resolve).on('error', () => {}) })
    chat.write(Buffer.from('one'))
    await new Promise((resolve) => { chat.once('data', resolve) })
    chat.cancel()
    assert.equal((await within(over)).code, status.CANCELLED)
    await gateway.left({ counted: 'neutral', status: 499, reason: 'client_cancelled' })
  })

  it('a refusal of our own is a status of gRPC', async (t) => {
    const { gateway, client } = await setting(t, {}, 1)
    const { error } = await unary(client, 'Unary', Buffer.from('x'))
    assert.equal(error?.code, status.UNAVAILABLE)
    await gateway.left({ counted: 'failure', status: 200, reason: 'connect_refused' })
  })

  it('a pool that speaks HTTP/1.1 cannot take a call, and says so', async (t) => {
    const { gateway, client } = await setting(t, { http2: 'off' })
    const { error } = await unary(client, 'Unary', Buffer.from('x'))
    assert.equal(error?.code, status.UNIMPLEMENTED)
    await gateway.left({ counted: 'neutral', status: 200, reason: 'protocol_mismatch', upstream: null })
  })
})
