import type { Random } from '../../lib/random.ts'
import type { LogLine } from '../support/collect.ts'
import type { Gateway } from '../support/gateway.ts'
import { until } from '../support/wait.ts'
import type { Report } from '../conformance/suite.ts'
import { converse } from './client.ts'

/** One gateway with what stands behind it, on which one step runs at a time. */
export interface Lane {
  readonly gateway: Gateway
  /** One connection's worth of bytes. Returns what was sent, in case of a fault that is found only afterwards. @throws a fault */
  step (random: Random): Promise<void>
}

export interface Campaign {
  readonly name: string
  readonly about: string
  open (report: Report): Promise<Lane>
}

/** Limits so short that whatever hangs ends soon. */
export const hurried = { headersTimeoutMs: 300, requestTimeoutMs: 400, keepAliveTimeoutMs: 200 }
export const hurriedPool = { timeouts: { connectMs: 300, headersMs: 300, bodyIdleMs: 300, totalMs: 800 }, connections: { max: 2, keepAliveMs: 300 } }

/** The access lines that a piece of work leaves behind, once everything is given back. @throws an error in the log that is our own, and a place that is not given back */
export async function linesOf (gateway: Gateway, work: () => Promise<void>): Promise<LogLine[]> {
  const before = gateway.lines.lines.length
  await work()
  await quiet(gateway)
  const lines = gateway.lines.lines.slice(before)
  const fault = lines.find(({ msg, level, reason }) => msg === 'internal_error' || level === 60 || reason === 'internal_error')
  if (fault !== undefined) throw new Error(`an error of our own: ${JSON.stringify(fault)}`)
  return lines.filter(({ msg, path }) => msg === 'access' && path !== syncPath)
}

const syncPath = '/livez'

/** A client that has left may not have been noticed yet: a connection made after it has to be served, and both must be gone. */
export async function quiet (gateway: Gateway, opening = ''): Promise<void> {
  await converse(gateway.port, [Buffer.from(`${opening}GET ${syncPath} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n`)], 'read')
  await noConnections(gateway)
  await gateway.idle()
}

/** @throws where connections of clients are left */
export async function noConnections ({ app }: Gateway): Promise<void> {
  await until(() => new Promise<boolean>((resolve, reject) => {
    app.server.getConnections((error, count) => { if (error === null) resolve(count === 0); else reject(error) })
  }), { what: 'no connection of a client', timeoutMs: 10_000, intervalMs: 1 })
}
