import { STATUS_CODES } from 'node:http'
import type { Reason } from '../lib/failure.ts'
import { problem } from '../lib/http/problem.ts'

/** A whole response on the wire, for a connection on which no request came to be. */
export function rawProblem (reason: Reason): Buffer {
  const { status, headers, body } = problem(reason, '')
  const fields = { ...headers, 'content-length': String(body.length), 'connection': 'close', 'date': new Date().toUTCString() }
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return Buffer.concat([Buffer.from(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n`), body])
}
