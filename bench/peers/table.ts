import { breakwater, breakwaterLarge, breakwaterNoMetrics, breakwaterNoRecorder, breakwaterSampled, breakwaterTraced, httpProxy, nodeUndici, replyFrom } from './node-peers.ts'
import { caddy, go, goOneThread, haproxy, nginx } from './native-peers.ts'
import type { Peer } from './peer.ts'

/** Every proxy of the comparison, ours first: the others' ratios are to it. */
export const peers: readonly Peer[] = [breakwater, breakwaterLarge, breakwaterNoMetrics, breakwaterNoRecorder, breakwaterSampled, breakwaterTraced, replyFrom, nodeUndici, httpProxy, go, goOneThread, caddy, haproxy, nginx]

/** DESIGN's speed targets: our CPU a request over the peer's, at most. */
export const targets: ReadonlyMap<string, number> = new Map([
  ['reply-from', 1.0],
  ['node-undici', 1.3],
  ['go-httputil', 0.65],
  ['go-httputil-1', 0.65],
  ['caddy', 0.85],
  ['http-proxy', 0.5]
])
