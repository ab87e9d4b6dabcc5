import { startGateway, type Gateway } from '../../support/gateway.ts'
import { rawConnect } from '../../support/raw-client.ts'
import { echoing, recorder, type Recorder } from '../../support/recorder.ts'
import { judge } from '../arrivals.ts'
import { until } from '../../support/wait.ts'
import type { Report, Suite } from '../suite.ts'
import { inLanes, lastRequest, nextClient, talk } from '../talk.ts'
import { earlyCases, earlyReply, earlyRoutes, type EarlyCase } from './early.ts'
import { framingCases } from './framing.ts'
import { headCases } from './heads.ts'

interface Lane { gateway: Gateway, upstream: Recorder }

/** One connection to the upstream: whatever is left on it meets the next request. */
async function open (report: Report, early = false): Promise<Lane> {
  const upstream = await recorder(report, echoing, earlyReply)
  const gateway = await startGateway(report, { upstreams: [upstream.url], pool: { connections: { max: 1 } }, server: { headersTimeoutMs: 300, requestTimeoutMs: 300 }, ...early && { routes: earlyRoutes } })
  return { gateway, upstream }
}

/** Where the bytes are cut in two: nowhere, behind the head, and within the line that ends it. */
const cuts: Record<string, (bytes: string) => string[]> = {
  whole: (bytes) => [bytes],
  'in lines': (bytes) => bytes.match(/[^\n]*\n|[^\n]+$/g) ?? []
}

const probe = (lane: Lane, pieces: readonly string[]): Promise<string | undefined> => judged(lane, pieces, () => talk(lane.gateway.port, pieces))

const finalAnswer = /^HTTP\/1\.1 [2-5]/m

/** Sends the rest once something has come back, or nothing does. */
function probeEarly (lane: Lane, { head, rest }: EarlyCase): Promise<string | undefined> {
  const behind = rest + lastRequest
  return judged(lane, [head, behind], async () => {
    const client = await rawConnect(lane.gateway.port, { timeoutMs: 10_000 })
    try {
      await client.write(head)
      await until(() => finalAnswer.test(client.reader.received.toString('latin1')), { timeoutMs: 10, intervalMs: 1 }).catch(() => {})
      await client.write(behind)
      await client.readAll()
      return client.reader.received
    } finally {
      client.destroy()
    }
  })
}

async function judged ({ gateway, upstream }: Lane, pieces: readonly string[], say: () => Promise<Buffer>): Promise<string | undefined> {
  upstream.clear()
  const got = await say()
  await gateway.idle()
  await upstream.settled()
  const why = judge({ sent: Buffer.from(pieces.join(''), 'latin1'), got, upstream })
  await nextClient(gateway.port, upstream)
  return why
}

export const smuggling: Suite = {
  name: 'smuggling',
  about: 'bytes that two servers may read differently: no request arrives that was not sent, and the next client gets its own answer',
  needs: [],
  quick: true,
  async run (report) {
    const lanes = await Promise.all(Array.from({ length: 8 }, () => open(report)))
    const cases = [...framingCases, ...headCases].flatMap(([name, bytes]) =>
      Object.entries(cuts).map(([how, cut]): [string, string[]] => [`${name} (${how})`, cut(bytes + lastRequest)]))
    await inLanes(lanes, cases, (lane, [name, pieces]) => report.check(name, () => probe(lane, pieces)))
    const early = await Promise.all(Array.from({ length: 8 }, () => open(report, true)))
    await inLanes(early, earlyCases, (lane, each) => report.check(each.name, () => probeEarly(lane, each)))
  }
}
