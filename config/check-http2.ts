import type { Report } from './checks.ts'
import { keyPath } from './path.ts'

/** Whether the upstreams of a pool can be spoken to as it says. @param mayBringTls others may come that are https */
export const checkHttp2 = (http2: unknown, path: string, upstreams: ReadonlyArray<{ secure: boolean, id: string } | null>, mayBringTls: boolean, report: Report): void => {
  if (http2 === 'prior-knowledge') {
    for (const [index, upstream] of upstreams.entries()) {
      if (upstream?.secure === true) report(keyPath(path, 'http2'), `prior-knowledge is for upstreams without TLS, and upstreams[${index}] (${upstream.id}) is https; alpn is for those`)
    }
  } else if (http2 === 'alpn' && upstreams.length > 0 && !mayBringTls && upstreams.every((upstream) => upstream !== null && !upstream.secure)) {
    report(keyPath(path, 'http2'), 'alpn is only for pools with an https upstream, and this one has none')
  }
}
