import type { FastifyReply } from 'fastify'
import type { ResponseFields } from '../../lib/http/response-head.ts'

/**
 * Takes an upstream's fields out of a reply that will not have its body: what else stands in it is the app's, and stays.
 * @param kept the name of a field that is ours although it is among them
 */
export function removeFields (reply: FastifyReply, fields: ResponseFields, kept: string): void {
  for (const [name, value] of Object.entries(fields)) {
    if (name === 'set-cookie') removeCookies(reply, value)
    else if (name !== kept) reply.removeHeader(name)
  }
}

/** Cookies are the one field of which Fastify adds the upstream's lines to the app's. */
function removeCookies (reply: FastifyReply, theirs: string | string[]): void {
  const all = [reply.getHeader('set-cookie') ?? []].flat() as string[]
  const own = all.filter((cookie) => !theirs.includes(cookie))
  reply.removeHeader('set-cookie')
  if (own.length > 0) reply.header('set-cookie', own)
}
