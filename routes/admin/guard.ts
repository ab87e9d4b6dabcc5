import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { isLoopback } from '../../lib/http/address.ts'
import { isLoopbackAuthority } from '../../lib/http/loopback.ts'
import { refuse } from './replies.ts'

/**
 * Whose requests are looked at: with `loopbackOnly` those of this machine alone, asked for by an address or as `localhost`. Never
 * those that a page of another origin makes.
 */
export function originGuard (loopbackOnly: boolean): onRequestHookHandler {
  return (request, reply, done) => {
    const { headers, socket } = request.raw
    const { host, origin } = headers
    // A connection that is gone has no address: it is nobody's, and nothing is done for it.
    if (loopbackOnly && !isLoopback(socket.remoteAddress ?? '')) {
      return refuse(request, reply, 403, 'the admin routes answer this machine alone')
    }
    if (loopbackOnly && host !== undefined && !isLoopbackAuthority(host)) {
      return refuse(request, reply, 421, 'ask for localhost or a loopback address')
    }
    if (origin !== undefined && !isOwnOrigin(origin, host)) {
      return refuse(request, reply, 403, 'requests of other origins are refused')
    }
    done()
  }
}

function isOwnOrigin (origin: string, host: string | undefined): boolean {
  const [scheme, authority] = origin.split('://')
  if (host === undefined || authority === undefined || (scheme !== 'http' && scheme !== 'https')) return false
  const own = `${scheme}://${host}`
  return URL.canParse(origin) && URL.canParse(own) && new URL(origin).host === new URL(own).host
}

const digest = (bytes: Buffer): Buffer => createHash('sha256').update(bytes).digest()

/** Wants `Authorization: Bearer <token>`. The digests are compared, so that the time tells nothing, the token's length included. */
export function tokenGuard (token: string): onRequestHookHandler {
  const wanted = digest(Buffer.from(token))
  return (request, reply, done) => {
    const given = /^Bearer +([^ ].*)$/i.exec(request.raw.headers.authorization ?? '')?.[1]
    if (given !== undefined && timingSafeEqual(digest(Buffer.from(given, 'latin1')), wanted)) return done()
    reply.header('www-authenticate', 'Bearer')
    refuse(request, reply, 401, given === undefined ? 'Authorization: Bearer and the admin token are wanted' : 'the token is not the admin token')
  }
}

/** Writes come as JSON, which no form of another origin can send. */
export function requireJson (request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  if (/^application\/json[ \t]*(?:;|$)/i.test(request.raw.headers['content-type'] ?? '')) return done()
  refuse(request, reply, 415, 'Content-Type must be application/json')
}
