import { resolve } from 'node:path'
import { parseUpstreamList } from '../../config/upstream-list.ts'
import type { DiscoveryOptions } from '../../config/schema.ts'
import type { DiscoveredUpstream } from '../../lib/discovery/members.ts'
import { watchFile } from '../file-watch.ts'
import type { DiscoverySource } from './source.ts'

/** A content that cannot be read may be half of one: so long it may stand before it counts as wrong. */
const doubtMs = 1000

/** Upstreams from a file, whenever its content changes. A content that is wrong in any part is not used at all. */
export class FileSource implements DiscoverySource {
  readonly #path: string
  readonly #pollMs: number
  /** Ends what runs. */
  #end: (() => void) | null = null
  #restart: (() => void) | null = null

  /** A relative path starts at the working directory. */
  constructor ({ path, pollMs }: NonNullable<DiscoveryOptions['file']>) {
    this.#path = resolve(path)
    this.#pollMs = pollMs
  }

  start (report: (members: readonly DiscoveredUpstream[]) => void, fail: (error: Error) => void): void {
    let doubt: NodeJS.Timeout | undefined
    /** What the present content says; null while there is none, or a wrong one. */
    let members: readonly DiscoveredUpstream[] | null = null
    const unwatch = watchFile(this.#path, {
      pollMs: this.#pollMs,
      onChange: (content) => {
        clearTimeout(doubt)
        try {
          members = parseUpstreamList(content, this.#path)
        } catch (error) {
          members = null
          doubt = setTimeout(fail, Math.min(doubtMs, this.#pollMs), error as Error)
          doubt.unref()
          return
        }
        report(members)
      },
      onSame: () => { if (members !== null) report(members) },
      onError: (error) => {
        clearTimeout(doubt)
        fail(error)
      }
    })
    this.#end = () => {
      clearTimeout(doubt)
      unwatch()
    }
    this.#restart = () => { this.start(report, fail) }
  }

  stop (): void {
    this.#end?.()
    this.#end = null
    this.#restart = null
  }

  refresh (): void {
    this.#end?.()
    this.#restart?.()
  }
}
