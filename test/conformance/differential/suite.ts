import { seededRandom } from '../../../lib/random.ts'
import { startGateway, type Gateway } from '../../support/gateway.ts'
import { recorder, type Recorder } from '../../support/recorder.ts'
import { strictRequests } from '../../support/strict-http.ts'
import { judge } from '../arrivals.ts'
import { startNginx } from '../nginx.ts'
import type { Report, Suite } from '../suite.ts'
import { inLanes, talk } from '../talk.ts'
import { differenceOf, type Outcome } from './compare.ts'
import { explanationOf } from './explained.ts'
import { draw, type Script } from './grammar.ts'

interface Lane { gateway: Gateway, nginx: number, behindUs: Recorder, behindNginx: Recorder }

async function open (report: Report): Promise<Lane> {
  const [behindUs, behindNginx] = await Promise.all([recorder(report), recorder(report)])
  const gateway = await startGateway(report, { upstreams: [behindUs.url], pool: { hostHeader: 'preserve' }, server: { headersTimeoutMs: 1000, requestTimeoutMs: 1000, probes: false } })
  return { gateway, nginx: await startNginx(report, `127.0.0.1:${behindNginx.port}`), behindUs, behindNginx }
}

async function through (port: number, upstream: Recorder, bytes: string): Promise<Outcome> {
  upstream.clear()
  const got = await talk(port, [Buffer.from(bytes, 'latin1')])
  await upstream.settled()
  return { got, arrived: [...upstream.requests], problems: [...upstream.problems] }
}

/** Null where both did the same; the name of what explains a difference. @throws a difference that nothing explains */
async function compare ({ gateway, nginx, behindUs, behindNginx }: Lane, { bytes, tags }: Script): Promise<string | undefined> {
  const [ours, theirs] = await Promise.all([through(gateway.port, behindUs, bytes), through(nginx, behindNginx, bytes)])
  await gateway.idle()
  judge({ sent: Buffer.from(bytes, 'latin1'), got: ours.got, upstream: { requests: ours.arrived, problems: ours.problems } })
  const difference = differenceOf(strictRequests(bytes, true).requests, ours, theirs)
  if (difference === null) return undefined
  const why = explanationOf(difference, tags)
  if (why !== null) return why
  throw new Error(`${difference.kind}, ${difference.what}\nsent ${JSON.stringify(bytes.slice(0, 600))}\nhere ${JSON.stringify(ours.got.toString('latin1').slice(0, 300))}\nthere ${JSON.stringify(theirs.got.toString('latin1').slice(0, 300))}`)
}

export const differential: Suite = {
  name: 'differential',
  about: 'requests drawn at random go through Breakwater and nginx: what arrives and what comes back is the same, or explained',
  needs: ['nginx'],
  quick: true,
  async run (report, { seed, count }) {
    const random = seededRandom(seed)
    const lanes = await Promise.all(Array.from({ length: 4 }, () => open(report)))
    const scripts = Array.from({ length: count ?? 400 }, () => draw(random))
    await inLanes(lanes, scripts.map((script, index): [number, Script] => [index, script]), (lane, [index, script]) =>
      report.check(`${index}: ${script.tags.join() || 'ordinary'}`, () => compare(lane, script)))
  }
}
