import { STATUS_CODES } from 'node:http'
import type { Reason } from '../lib/failure.ts'
import { problem } from '../lib/http/problem.ts'

/**
 * A whole response on the wire, for a connection on which no request came to be.
 * @param detail what the client is told in place of what the reason says
 * @param requestId goes into the document, and into the field named `requestIdHeader`
 */
export function rawProblem (reason: Reason, requestId = '', requestIdHeader?: string, detail?: string): Buffer {
  const { status, headers, body } = problem(reason, requestId, detail)
  const fields: Record<string, string> = { ...headers, 'content-length': String(body.length), 'connection': 'close', 'date': new Date().toUTCString() }
  if (requestIdHeader !== undefined) fields[requestIdHeader] = requestId
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return Buffer.concat([Buffer.from(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n`), body])
}
