import { isIP } from 'node:net'
import { noAddresses, settle, shorter, type Addresses, type Answer, type Family, type NameAnswer, type Settled } from '../../lib/discovery/answer.ts'
import { bracketed, maxMembers, type DiscoveredUpstream } from '../../lib/discovery/members.ts'
import { delayAfterAnswer, delayAfterFailure } from '../../lib/discovery/schedule.ts'
import { plainName, rankTargets, serviceHost } from '../../lib/discovery/srv.ts'
import type { Random } from '../../lib/random.ts'
import type { LocalNames } from './local-names.ts'
import { Resolution, whyNot, type DnsOptions } from './resolution.ts'
import type { DiscoverySource } from './source.ts'

type Report = (members: readonly DiscoveredUpstream[], incomplete?: Error) => void

/** What a round found out. */
type Round =
  | { members: DiscoveredUpstream[], ttlMs: number | null, incomplete: string | null, known: Map<string, Addresses> }
  | { failed: string }

const isLate = (answer: Answer): boolean => answer.kind === 'failed' && answer.late

const isKnown = ({ addresses }: Settled): boolean => addresses.ipv4.length + addresses.ipv6.length > 0

/** Upstreams by a DNS name, asked for again when the records' time ends. */
export class DnsSource implements DiscoverySource {
  readonly #options: DnsOptions
  readonly #keep: boolean
  readonly #random: Random
  readonly #local: LocalNames | null
  readonly #families: readonly Family[]
  readonly #host: string
  readonly #port: number
  /** The addresses of each name by the last good round, for families that a later one cannot ask for. */
  #known = new Map<string, Addresses>()
  #failures = 0
  #timer: NodeJS.Timeout | undefined
  #running: Resolution | null = null
  #ask: (() => void) | null = null
  nextAt: number | null = null

  /**
   * @param keep whether addresses stay while nobody can be asked for them
   * @param local what else knows names; null: DNS alone counts
   */
  constructor (options: DnsOptions, keep: boolean, random: Random, local: LocalNames | null) {
    this.#options = options
    this.#keep = keep
    this.#random = random
    this.#local = local
    this.#families = options.family === 'any' ? ['ipv4', 'ipv6'] : [options.family]
    const host = options.type === 'srv' ? serviceHost(options.name) : plainName(options.name)
    this.#host = isIP(host) === 6 ? bracketed(host) : host
    this.#port = options.port ?? (options.scheme === 'https' ? 443 : 80)
  }

  start (report: Report, fail: (error: Error) => void): void {
    this.#ask = () => { this.#round(report, fail) }
    this.#ask()
  }

  stop (): void {
    this.#ask = null
    this.nextAt = null
    clearTimeout(this.#timer)
    this.#running?.cancel()
    this.#running = null
  }

  refresh (): void {
    this.#ask?.()
  }

  #round (report: Report, fail: (error: Error) => void): void {
    if (this.#running !== null) return
    clearTimeout(this.#timer)
    this.nextAt = null
    // A new one each time: it reads the system's settings when it is made.
    let resolution: Resolution
    try {
      resolution = new Resolution(this.#options)
    } catch (error) {
      return this.#failed(error as Error, fail)
    }
    this.#running = resolution
    const ask = this.#options.type === 'srv' ? this.#services(resolution) : this.#addresses(resolution)
    void ask.catch((error: unknown) => ({ failed: String(error) })).then((round) => this.#end(resolution, round, report, fail))
  }

  #end (resolution: Resolution, round: Round, report: Report, fail: (error: Error) => void): void {
    if (this.#running !== resolution) return
    this.#running = null
    if ('failed' in round) {
      this.#failed(new Error(round.failed), fail)
    } else {
      this.#failures = 0
      this.#known = round.known
      this.#wait(delayAfterAnswer(round.ttlMs, this.#options, this.#random))
      report(round.members, round.incomplete === null ? undefined : new Error(round.incomplete))
    }
  }

  /** The next round is certain before anybody is told. */
  #failed (error: Error, fail: (error: Error) => void): void {
    this.#wait(delayAfterFailure(++this.#failures, this.#options, this.#random))
    fail(error)
  }

  #wait (ms: number): void {
    this.nextAt = Date.now() + ms
    this.#timer = setTimeout(() => { this.#ask?.() }, Math.ceil(ms))
    this.#timer.unref()
  }

  async #addresses (resolution: Resolution): Promise<Round> {
    const { name, timeoutMs } = this.#options
    const [answer = {}] = await this.#answers(resolution, [name])
    let settled = this.#settle(name, answer)
    // The system may know more than its resolvers. Where these gave no answer in time, it would only wait for them as well.
    if (!settled.found && this.#local !== null && !resolution.cancelled && !Object.values(answer).some(isLate)) {
      const more = this.#settle(name, await this.#local.lookup(name, this.#families, timeoutMs))
      if (more.found) settled = more
    }
    const { found, failed, none, addresses, ttlMs, retained } = settled
    if (!found) return { failed: failed ?? none ?? whyNot(name, 'ENODATA') }
    const members = [...addresses.ipv4, ...addresses.ipv6].map((address) => ({ url: this.#url(this.#port), address }))
    return { members, ttlMs, incomplete: retained > 0 ? failed : null, known: new Map([[name, addresses]]) }
  }

  async #services (resolution: Resolution): Promise<Round> {
    const { name } = this.#options
    const answer = await resolution.services(name)
    if (answer.kind !== 'found') return { failed: answer.why }
    const targets = rankTargets(answer.records).slice(0, maxMembers)
    if (targets.length === 0) return { failed: whyNot(name, 'ENODATA') }
    const names = [...new Set(targets.map((target) => target.name))]
    const answers = await this.#answers(resolution, names)
    const settled = new Map(names.map((each, index) => [each, this.#settle(each, answers[index]!)]))
    const each = [...settled.values()]
    const failed = each.find((one) => one.failed !== null)?.failed ?? null
    if (!each.some(({ found }) => found)) return { failed: failed ?? each[0]?.none ?? whyNot(name, 'ENODATA') }
    const members = targets.flatMap((target) => {
      const { addresses } = settled.get(target.name)!
      return [...addresses.ipv4, ...addresses.ipv6].map((address) => ({ url: this.#url(target.port), address, weight: target.weight, priority: target.priority }))
    })
    return {
      members,
      ttlMs: each.reduce((least: number | null, one) => shorter(least, one.ttlMs), null),
      incomplete: each.some(({ retained }) => retained > 0) ? failed : null,
      known: new Map([...settled].filter(([, one]) => isKnown(one)).map(([target, { addresses }]) => [target, addresses]))
    }
  }

  /** Addresses as they stand in the name itself, in the hosts file, or in DNS, in this order. */
  async #answers (resolution: Resolution, names: readonly string[]): Promise<NameAnswer[]> {
    const local = await this.#local?.inHosts(names.map(plainName), this.#families)
    const answers = names.map((name) => this.#literal(plainName(name)) ?? local?.get(plainName(name)))
    const unknown = names.filter((_, index) => answers[index] === undefined)
    const asked = await resolution.addresses(unknown, this.#families)
    return answers.map((answer) => answer ?? asked.shift()!)
  }

  #literal (name: string): NameAnswer | undefined {
    const version = isIP(name)
    if (version === 0) return undefined
    return { [version === 6 ? 'ipv6' : 'ipv4']: { kind: 'found', addresses: [name], ttlMs: null } }
  }

  #settle (name: string, answer: NameAnswer): Settled {
    return settle(this.#keep ? this.#known.get(name) ?? noAddresses : noAddresses, answer)
  }

  #url (port: number): string {
    return `${this.#options.scheme}://${this.#host}:${port}`
  }
}
