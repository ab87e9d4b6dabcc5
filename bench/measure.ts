import { get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Child } from './children.ts'
import type { LoadClient } from './load.ts'
import { cpuSeconds } from './proc.ts'

/** One round of one peer. */
export interface Round {
  /** Why its figures do not count; null: they do. */
  invalid: string | null
  requests: number
  /** User and system time of the proxy's processes for each request that was answered, in microseconds. */
  cpuMicros: number
  /** Share of one core that the proxy used, 0..cores. */
  busy: number
  requestsPerSecond: number
  p50: number
  p99: number
}

const invalidRound = (why: string): Round => ({ invalid: why, requests: 0, cpuMicros: NaN, busy: NaN, requestsPerSecond: NaN, p50: NaN, p99: NaN })

/** One GET; the status and the length of its body, or what went wrong. */
function probe (port: number, path: string): Promise<{ status: number, bytes: number } | { error: string }> {
  return new Promise(resolve => {
    const request = get({ host: '127.0.0.1', port, path, agent: false, timeout: 2000 }, response => {
      let bytes = 0
      response.on('data', (chunk: Buffer) => { bytes += chunk.length })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, bytes }))
      response.on('error', error => resolve({ error: error.message }))
    })
    request.on('timeout', () => request.destroy(new Error('no answer within 2 s')))
    request.on('error', error => resolve({ error: error.message }))
  })
}

/**
 * Waits until `child` answers with the whole body on the scenario's path.
 * @throws when it ends or does not within 20 seconds; the message tells the last answer and what the program complained of.
 */
export async function untilReady (child: Child, port: number, path: string, bytes: number): Promise<void> {
  const until = performance.now() + 20_000
  let last = 'nothing'
  while (performance.now() < until) {
    const ended = child.ended()
    if (ended !== null) throw new Error(`it ended at once (${ended}) ${child.complaint()}`)
    const answer = await probe(port, path)
    if ('error' in answer) last = answer.error
    else if (answer.status === 200 && answer.bytes === bytes) return
    else last = `status ${answer.status} with ${answer.bytes} bytes`
    await sleep(50)
  }
  throw new Error(`it was not ready within 20 seconds (last: ${last}) ${child.complaint()}`)
}

/** Puts one peer under load for `seconds`. Never throws: what goes wrong makes the round invalid and says why. */
export async function measureRound (child: Child, port: number, load: LoadClient, seconds: number): Promise<Round> {
  try {
    const before = cpuSeconds(child.pid)
    const result = await load.run(port, seconds)
    const used = cpuSeconds(child.pid) - before
    const ended = child.ended()
    if (ended !== null) return invalidRound(`the proxy ended (${ended})`)
    const faults = [
      result.requests === 0 ? 'no request was answered' : '',
      result.badStatuses > 0 ? `${result.badStatuses} answers were not 2xx` : '',
      result.socketErrors > 0 ? `${result.socketErrors} socket errors` : ''
    ].filter(fault => fault !== '')
    return {
      invalid: faults.length === 0 ? null : faults.join(', '),
      requests: result.requests,
      cpuMicros: used * 1e6 / result.requests,
      busy: used / result.seconds,
      requestsPerSecond: result.requests / result.seconds,
      p50: result.p50,
      p99: result.p99
    }
  } catch (error) {
    return invalidRound((error as Error).message)
  }
}

