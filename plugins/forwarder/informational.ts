import type { FastifyReply } from 'fastify'
import { util } from 'undici'

/**
 * Passes 103 Early Hints on to clients that know 1xx; other informational responses end here, since they concern only the
 * connection to the upstream. A hint is for now: one that would have to wait, for a slow client or behind an earlier answer, is
 * left out, so that nothing piles up.
 */
export function informational (reply: FastifyReply, status: number, rawFields: Buffer[]): void {
  const { raw, request } = reply
  if (status !== 103 || raw.headersSent || request.raw.httpVersion === '1.0') return
  if (raw.socket === null || raw.socket.writableLength > 0) return
  const hints: Record<string, string | string[]> = {}
  for (let i = 0; i + 1 < rawFields.length; i += 2) {
    const name = util.headerNameToString(rawFields[i] as Buffer)
    const value = (rawFields[i + 1] as Buffer).toString('latin1')
    if (name !== 'link') continue
    const links = hints[name]
    hints[name] = links === undefined ? [value] : [...links, value]
  }
  if (hints['link'] === undefined) return
  try {
    raw.writeEarlyHints(hints)
  } catch {
    // Node takes only links that it can parse; a hint that it refuses is left out, the answer follows anyway.
  }
}
