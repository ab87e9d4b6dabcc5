import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { answer } from './faulty-upstream.ts'
import { strictRequest, type StrictRequest } from './strict-http.ts'
import { until } from './wait.ts'

export interface Recorded extends StrictRequest {
  /** Which connection it came over: 1, 2, ... */
  connection: number
}

/** What the upstream says to a request: bytes, and whether it closes then. `null`: nothing at all. */
export type Reply = Buffer | { bytes: Buffer, close: boolean } | null

export interface Recorder {
  readonly port: number
  readonly url: string
  /** Every whole request, in the order of its arrival. */
  readonly requests: Recorded[]
  /** What came and was no request by the letter of RFC 9112. A proxy must never send such a thing. */
  readonly problems: string[]
  /** Requests that a connection's end cut off. */
  readonly cut: string[]
  readonly open: ReadonlySet<Socket>
  /** Resolves when no connection has part of a request. */
  settled (): Promise<void>
  /** Forgets what was recorded. */
  clear (): void
}

/** The upstream's ordinary answer: the target that was asked for is its body, so that an answer in a wrong place is seen. */
export function echoing ({ method, target }: StrictRequest): Reply {
  const bytes = answer({ headers: [['Content-Type', 'text/plain']], body: target })
  return method === 'HEAD' ? bytes.subarray(0, bytes.length - Buffer.byteLength(target, 'latin1')) : bytes
}

/**
 * An upstream that takes nothing but HTTP/1.1 by the letter, and writes down all that came.
 * @param early what it says to a request of which it has the head alone, and reads on; null: it waits for all of it
 */
export async function recorder (t: Pick<TestContext, 'after'>, reply: (request: Recorded) => Reply = echoing, early: (target: string) => Reply = () => null): Promise<Recorder> {
  const open = new Set<Socket>()
  const partial = new Set<Socket>()
  const requests: Recorded[] = []
  const problems: string[] = []
  const cut: string[] = []
  let connections = 0

  const server = createServer({ noDelay: true }, (socket) => {
    const connection = ++connections
    let rest: Buffer = Buffer.alloc(0)
    let answered = false
    const say = (said: Reply): void => {
      if (said === null) return
      if (Buffer.isBuffer(said)) socket.write(said)
      else if (said.close) socket.end(said.bytes)
      else socket.write(said.bytes)
    }
    open.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => {
      open.delete(socket)
      if (partial.delete(socket)) cut.push(rest.toString('latin1'))
    })
    socket.on('data', (bytes: Buffer) => {
      rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes])
      while (rest.length > 0 && socket.writable) {
        const step = strictRequest(rest)
        if (step.kind === 'more') {
          if (answered || !rest.includes('\r\n\r\n')) break
          const said = early(rest.toString('latin1').split(' ', 2)[1] ?? '')
          answered = said !== null
          say(said)
          break
        }
        if (step.kind === 'problem') {
          problems.push(`${step.what} in ${JSON.stringify(rest.toString('latin1').slice(0, 1000))}`)
          rest = Buffer.alloc(0)
          socket.destroy()
          break
        }
        rest = rest.subarray(step.used)
        const request = { ...step.request, connection }
        requests.push(request)
        if (!answered) say(reply(request))
        answered = false
      }
      if (rest.length > 0) partial.add(socket)
      else partial.delete(socket)
    })
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  const { port } = server.address() as AddressInfo
  t.after(async () => {
    const closed = new Promise((resolve) => { server.close(resolve) })
    for (const socket of open) socket.destroy()
    await closed
  })
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    requests,
    problems,
    cut,
    open,
    settled: async () => { await until(() => partial.size === 0, { what: 'no half request at the upstream' }) },
    clear () {
      requests.length = 0
      problems.length = 0
      cut.length = 0
    }
  }
}
