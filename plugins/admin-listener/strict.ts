import type { IncomingMessage, Server } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Reason } from '../../lib/failure.ts'
import { mayHaveLostFields } from '../../lib/http/field-limit.ts'
import { RequestHeadReader } from '../../lib/http/request-head.ts'
import { parseTarget } from '../../lib/http/target.ts'
import { refuse } from '../refusal.ts'

const reader = new RequestHeadReader([], 'x-request-id')

/** Why a head that Node's parser has taken is refused nevertheless, as the public listener would; null: it is not. */
function faultOf (raw: IncomingMessage, { maxHeadersCount }: Server): Reason | null {
  const { rawHeaders, url = '', method = '', headers, httpVersionMajor: major, httpVersionMinor: minor } = raw
  if (mayHaveLostFields(rawHeaders.length, maxHeadersCount)) return 'headers_too_large'
  const understood = major === 1 && (minor === 1 ? headers.host !== undefined : minor === 0 && headers['transfer-encoding'] === undefined)
  return understood && parseTarget(url, method) !== null && reader.read(rawHeaders, method) !== null ? null : 'bad_request'
}

/** Refuses malformed heads before any route is asked, and ends their connections: an onRequest hook, behind the edge's. */
export function refuseMalformed (request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  const fault = faultOf(request.raw, request.server.server)
  if (fault === null) done()
  else refuse(reply, fault)
}
