import type { Problem } from './problem.ts'

/**
 * A problem document (RFC 9457) for an error that is not an exchange's: there is no reason of the closed set to it, and the status
 * says what kind it is.
 * @param title the status in words, as HTTP names it
 */
export function statusProblem (status: number, title: string, requestId: string, detail: string): Problem {
  const document = { type: 'about:blank', title, status, detail, requestId }
  return {
    status,
    headers: { 'content-type': 'application/problem+json', 'cache-control': 'no-store' },
    body: Buffer.from(JSON.stringify(document))
  }
}
