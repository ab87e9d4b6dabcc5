// The peer "reply-from": what a Fastify user writes first. Arguments: PORT URL...
import Fastify from 'fastify'
import replyFrom from '@fastify/reply-from'

const [port, ...upstreams] = process.argv.slice(2)
let next = 0
const getUpstream = (): string => upstreams[next++ % upstreams.length] as string

const app = Fastify({ logger: false })
// Bodies stream, as reply-from's own documentation advises for a proxy; else JSON is parsed and printed anew.
app.removeAllContentTypeParsers()
app.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
app.register(replyFrom)
app.all('/*', (_request, reply) => reply.from(undefined, { getUpstream }))
await app.listen({ host: '127.0.0.1', port: Number(port) })
