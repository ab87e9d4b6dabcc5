import { Worker } from 'node:worker_threads'

/** Begins the ids of requests that are no part of a drill. */
export const warmPrefix = 'warm'

export interface LoadOptions {
  /** Default: 127.0.0.1 */
  host?: string
  port: number
  /** Requests a second. */
  rate: number
  seconds: number
  seed: number
  method: 'GET' | 'POST'
  path: string
  /** Bytes of each request's body. */
  bodyBytes: number
  /** Requests at the same time; what would be more is not sent, and counted. */
  maxOpen: number
  /** After so long a request without a whole answer is given up, in ms. */
  patienceMs: number
  /** Begins each request's id. */
  prefix: string
}

/** What became of one request. */
export interface Sample {
  /** In the field `x-drill-id`. */
  id: string
  /** When it was due, in ms after the start of the load. */
  at: number
  /** From that moment to the end of the answer, in ms: what the client itself was late is in it. */
  ms: number
  /** 0: no whole answer. */
  status: number
  /** Why there was no whole answer; '' where there was. */
  failure: '' | 'connect' | 'cut' | 'invalid' | 'timeout' | 'unsent'
  /** Of a refusal by the proxy, from its Proxy-Status; '' where there is none. */
  reason: string
}

export interface LoadResult {
  /** By the machine's monotonic clock, in ms. */
  startedAt: number
  samples: Sample[]
  /** How late the client sent, in ms: the latest of all, and the 99th percentile. */
  lateMaxMs: number
  lateP99Ms: number
}

export interface Load {
  /** By the machine's monotonic clock, in ms. */
  startedAt: number
  result: Promise<LoadResult>
  /** Sends nothing more; the result is of what was sent. */
  stop: () => void
  /** Ends at once, whatever is under way: there may be no result. */
  end: () => Promise<unknown>
}

type Message = { type: 'started', at: number } | { type: 'result', result: LoadResult }

/** Starts an open loop of requests, in a thread of its own: nothing but the load runs in its event loop. */
export async function startLoad (options: LoadOptions): Promise<Load> {
  const worker = new Worker(new URL('./load-thread.js', import.meta.url), { workerData: options })
  let started = (_at: number): void => {}
  const begun = new Promise<number>(resolve => { started = resolve })
  const result = new Promise<LoadResult>((resolve, reject) => {
    worker.on('message', (message: Message) => {
      if (message.type === 'started') started(message.at)
      else resolve(message.result)
    })
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('the load client ended without a result')))
  })
  // Whoever awaits it is told; nobody may, where something else has failed before.
  result.catch(() => {})
  const startedAt = await Promise.race([begun, result.then(({ startedAt: at }) => at)])
  return { startedAt, result, stop: () => worker.postMessage('stop', []), end: () => worker.terminate() }
}
