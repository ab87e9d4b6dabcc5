// The load client where wrk is not installed. Argument: {port, seconds, connections, method, path, requestBytes} as JSON.
import { createHistogram } from 'node:perf_hooks'
import { Client } from 'undici'
import type { LoadResult } from './load.ts'
import { jsonOf, type Scenario } from './scenarios.ts'

interface Load extends Pick<Scenario, 'method' | 'path' | 'requestBytes'> {
  port: number
  seconds: number
  connections: number
}

const { port, seconds, connections, method, path, requestBytes } = JSON.parse(process.argv[2] ?? '') as Load
const body = requestBytes === 0 ? null : jsonOf(requestBytes)
const headers = body === null ? {} : { 'content-type': 'application/json' }
const latency = createHistogram()
const result: LoadResult = { requests: 0, seconds: 0, p50: 0, p99: 0, badStatuses: 0, socketErrors: 0 }
const started = performance.now()
const end = started + seconds * 1000

function once (client: Client): Promise<void> {
  return new Promise(resolve => {
    const began = performance.now()
    let ok = false
    client.dispatch({ method, path, body, headers }, {
      onRequestStart () {},
      onResponseStart (_controller, statusCode) { ok = statusCode >= 200 && statusCode < 300 },
      onResponseData () {},
      onResponseEnd () {
        result.requests++
        if (!ok) result.badStatuses++
        latency.record(Math.max(1, Math.round((performance.now() - began) * 1000)))
        resolve()
      },
      onResponseError () {
        result.socketErrors++
        resolve()
      }
    })
  })
}

async function loop (): Promise<void> {
  const client = new Client(`http://127.0.0.1:${port}`, { pipelining: 1 })
  while (performance.now() < end && result.socketErrors < 1000) await once(client)
  await client.destroy()
}

await Promise.all(Array.from({ length: connections }, loop))
result.seconds = (performance.now() - started) / 1000
result.p50 = latency.percentile(50) / 1000
result.p99 = latency.percentile(99) / 1000
process.stdout.write(`${JSON.stringify(result)}\n`)
