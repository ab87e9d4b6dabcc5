// The load client of drills and benchmarks: a thread, started by load.ts.
import { parentPort, workerData } from 'node:worker_threads'
import { machineNow } from './clock.ts'
import { Connection } from './connection.ts'
import { quantile } from './figures.ts'
import type { LoadOptions, LoadResult, Sample } from './load.ts'
import { dueTimes } from './schedule.ts'

const options = workerData as LoadOptions
const { host = '127.0.0.1' } = options
const body = options.bodyBytes === 0 ? '' : 'x'.repeat(options.bodyBytes)
const framing = options.method === 'POST' ? `content-type: text/plain\r\ncontent-length: ${body.length}\r\n` : ''
const head = `${options.method} ${options.path} HTTP/1.1\r\nhost: ${host.includes(':') ? `[${host}]` : host}:${options.port}\r\n${framing}x-drill-id: ${options.prefix}`

/** The latest used is taken first, so that those which are left over grow old. */
const free: Connection[] = []
const open = new Set<Connection>()
const samples: Sample[] = []
const late: number[] = []
let pending = 0
let scheduled = false

const startedAt = machineNow() + 5
const due = dueTimes(options.rate, options.seconds, options.seed)
let next = due.next()

function take (): Connection {
  for (let connection = free.pop(); connection !== undefined; connection = free.pop()) {
    if (connection.usable) return connection
    open.delete(connection)
  }
  const connection = new Connection(options.port, host)
  open.add(connection)
  return connection
}

function send (at: number, now: number): void {
  const sample: Sample = { id: `${options.prefix}${samples.length}`, at, ms: 0, status: 0, failure: 'unsent', reason: '' }
  samples.push(sample)
  if (pending >= options.maxOpen) return
  pending++
  late.push(now - at)
  const connection = take()
  const patience = setTimeout(() => connection.destroy('timeout'), options.patienceMs)
  connection.send(`${head}${samples.length - 1}\r\n\r\n${body}`, ({ status, failure, reason }) => {
    clearTimeout(patience)
    sample.ms = machineNow() - startedAt - at
    sample.status = status
    sample.failure = failure
    sample.reason = reason
    pending--
    if (connection.usable) free.push(connection)
    else open.delete(connection)
    if (scheduled && pending === 0) finish()
  })
}

function sendDue (): void {
  const now = machineNow() - startedAt
  for (; next.done !== true && next.value <= now; next = due.next()) send(next.value, now)
  if (next.done !== true) {
    setTimeout(sendDue, 1)
    return
  }
  scheduled = true
  if (pending === 0) finish()
}

function finish (): void {
  const result: LoadResult = { startedAt, samples, lateMaxMs: quantile(late, 1), lateP99Ms: quantile(late, 0.99) }
  parentPort?.postMessage({ type: 'result', result }, [])
  for (const connection of open) connection.destroy('cut')
  parentPort?.close()
}

parentPort?.once('message', () => { next = { done: true, value: undefined } })
parentPort?.postMessage({ type: 'started', at: startedAt }, [])
sendDue()
