import { promises } from 'node:dns'
import type { DiscoveryOptions } from '../../config/schema.ts'
import type { Answer, Family, NameAnswer } from '../../lib/discovery/answer.ts'
import type { SrvRecord } from '../../lib/discovery/srv.ts'
import { exactTimer } from '../exact-timer.ts'

export type DnsOptions = NonNullable<DiscoveryOptions['dns']>

/** What a resolver said about a service. */
export type ServiceAnswer = { kind: 'found', records: readonly SrvRecord[] } | Exclude<Answer, { kind: 'found' }>

/** Codes of node:dns in words; the name comes before them. */
const words: Record<string, string> = {
  ENOTFOUND: 'there is no such name',
  ENODATA: 'the name has no such records',
  ESERVFAIL: 'the resolver failed (SERVFAIL)',
  EREFUSED: 'the resolver refused to answer',
  ETIMEOUT: 'no answer in time',
  ECANCELLED: 'no answer in time',
  ECONNREFUSED: 'no resolver could be reached',
  EBADRESP: 'the answer was no DNS',
  EAI_AGAIN: 'the system could not ask now'
}

/** Why a name is not known, in words. */
export const whyNot = (name: string, code: string): string => `${name}: ${words[code] ?? code}`

export const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error)

/** A question is sent again after this share of the time limit, so that a lost datagram, or a resolver that is gone, costs a part of it only. */
const tryShare = 0.25
const tries = 3

/**
 * One round of questions to the resolvers: those of the options, or the system's as they are configured at this moment. Each
 * question has the time limit of the options for its whole answer. node:dns keeps the process alive meanwhile.
 */
export class Resolution {
  readonly #resolver: promises.Resolver
  readonly #limitMs: number
  #cancelled = false

  /** @throws TypeError for a resolver that is no address */
  constructor ({ servers, timeoutMs }: Pick<DnsOptions, 'servers' | 'timeoutMs'>) {
    this.#limitMs = timeoutMs
    this.#resolver = new promises.Resolver({ timeout: Math.ceil(timeoutMs * tryShare), tries })
    if (servers.length > 0) this.#resolver.setServers(servers)
  }

  get cancelled (): boolean { return this.#cancelled }

  /** Ends all questions under way as failed. */
  cancel (): void {
    this.#cancelled = true
    this.#resolver.cancel()
  }

  /** The addresses of each name, all of them asked for at the same time. */
  async addresses (names: readonly string[], families: readonly Family[]): Promise<NameAnswer[]> {
    return this.#timed(() => Promise.all(names.map(async (name) => {
      const answers = await Promise.all(families.map((family) => this.#family(name, family)))
      return Object.fromEntries(families.map((family, index) => [family, answers[index]]))
    })))
  }

  async services (name: string): Promise<ServiceAnswer> {
    return this.#timed(async () => {
      try {
        return { kind: 'found', records: await this.#resolver.resolveSrv(name) }
      } catch (error) {
        return notFound(name, error)
      }
    })
  }

  async #family (name: string, family: Family): Promise<Answer> {
    try {
      const records = family === 'ipv4' ? await this.#resolver.resolve4(name, { ttl: true }) : await this.#resolver.resolve6(name, { ttl: true })
      return { kind: 'found', addresses: records.map(({ address }) => address), ttlMs: Math.min(...records.map(({ ttl }) => ttl)) * 1000 }
    } catch (error) {
      return notFound(name, error)
    }
  }

  async #timed<T> (ask: () => Promise<T>): Promise<T> {
    const stop = exactTimer(this.#limitMs, () => { this.#resolver.cancel() })
    try {
      const answer = ask()
      if (this.#cancelled) this.#resolver.cancel()
      return await answer
    } finally {
      stop()
    }
  }
}

function notFound (name: string, error: unknown): Exclude<Answer, { kind: 'found' }> {
  const code = codeOf(error)
  const why = whyNot(name, code)
  return code === 'ENOTFOUND' || code === 'ENODATA' ? { kind: 'none', why } : { kind: 'failed', why, late: code === 'ETIMEOUT' || code === 'ECANCELLED' }
}
