import type { DiscoveredUpstream, DiscoverySource } from '../../../plugins/discovery.ts'

/** A source that a test plays. */
export class Played implements DiscoverySource {
  readonly calls: string[] = []
  report: (members: readonly DiscoveredUpstream[], incomplete?: Error) => void = () => {}
  fail: (error: Error) => void = () => {}
  nextAt: number | null = null
  /** What is done when it is started. */
  begin: () => void = () => {}
  end: () => void | Promise<void> = () => {}

  start (report: this['report'], fail: this['fail']): void {
    this.calls.push('start')
    this.report = report
    this.fail = fail
    this.begin()
  }

  stop (): void | Promise<void> {
    this.calls.push('stop')
    return this.end()
  }

  refresh (): void {
    this.calls.push('refresh')
  }
}

/** Upstreams at these ports. */
export const at = (...ports: number[]): DiscoveredUpstream[] => ports.map((port) => ({ url: `http://10.0.0.1:${port}` }))
export const idsOf = (...ports: number[]): string[] => ports.map((port) => `10.0.0.1:${port}`)
