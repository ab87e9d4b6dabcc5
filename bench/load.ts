import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { built, which, type Workshop } from './children.ts'
import type { Scenario } from './scenarios.ts'

/** What the client saw in one round. Latencies in milliseconds. */
export interface LoadResult {
  requests: number
  seconds: number
  p50: number
  p99: number
  /** Answers that were not 2xx (wrk: above 399). */
  badStatuses: number
  /** Failed connects, reads, writes and timeouts. */
  socketErrors: number
}

export interface LoadClient {
  title: string
  /** One round of closed-loop load over keep-alive connections. @throws when the client fails or prints no result. */
  run: (port: number, seconds: number) => Promise<LoadResult>
}

/** wrk runs this script's `done` once, so it costs nothing a request. */
const wrkScript = ({ method, requestBytes }: Scenario): string => `
wrk.method = '${method}'
${requestBytes === 0 ? '' : `wrk.body = '{"pad":"' .. string.rep('x', ${requestBytes - 10}) .. '"}'\nwrk.headers['Content-Type'] = 'application/json'`}
function done (summary, latency, requests)
  local e = summary.errors
  io.write(string.format('\\n{"requests":%d,"seconds":%.6f,"p50":%.3f,"p99":%.3f,"badStatuses":%d,"socketErrors":%d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    e.status, e.connect + e.read + e.write + e.timeout))
end
`

/** The result in what a client printed: its last line that is a JSON object. @throws when there is none. */
export function parseResult (printed: string): LoadResult {
  const line = printed.trim().split('\n').findLast(candidate => candidate.startsWith('{'))
  if (line === undefined) throw new Error(`the load client printed no result: ${printed.slice(0, 500)}`)
  return JSON.parse(line) as LoadResult
}

function output (program: string, args: string[], seconds: number, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { timeout: (seconds + 20) * 1000, killSignal: 'SIGKILL', signal }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new Error(`${program} failed: ${stderr.trim() || error.message}`))
    })
  })
}

/** wrk when it is installed, else a client of our own; both are a process apart. */
export function loadClient (workshop: Workshop, scenario: Scenario, connections: number): LoadClient {
  const wrk = which('wrk')
  if (wrk === null) {
    return {
      title: 'undici',
      run: async (port, seconds) => {
        const { method, path, requestBytes } = scenario
        return parseResult(await output(process.execPath, [built('bench/load-client.js'), JSON.stringify({ port, seconds, connections, method, path, requestBytes })], seconds, workshop.signal))
      }
    }
  }
  const script = join(workshop.place('load'), 'load.lua')
  writeFileSync(script, wrkScript(scenario))
  return {
    title: 'wrk',
    run: async (port, seconds) => {
      // wrk takes whole seconds.
      const whole = Math.max(1, Math.round(seconds))
      return parseResult(await output(wrk, ['-t1', `-c${connections}`, `-d${whole}s`, '-s', script, `http://127.0.0.1:${port}${scenario.path}`], whole, workshop.signal))
    }
  }
}
