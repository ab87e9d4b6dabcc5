import { lookup } from 'node:dns'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Answer, Family, NameAnswer } from '../../lib/discovery/answer.ts'
import { findInHosts } from '../../lib/discovery/hosts.ts'
import { exactTimer } from '../exact-timer.ts'
import { codeOf, whyNot } from './resolution.ts'

const systemHosts = process.platform === 'win32' ? join(process.env['SystemRoot'] ?? 'C:\\Windows', 'System32', 'drivers', 'etc', 'hosts') : '/etc/hosts'

/** Far above any hosts file. */
const maxHostsBytes = 8_388_608

const ofFamily = (addresses: readonly string[], family: Family): string[] => addresses.filter((address) => address.includes(':') === (family === 'ipv6'))

function answerOf (name: string, addresses: readonly string[], families: readonly Family[]): NameAnswer {
  const entries = families.map((family): [Family, Answer] => {
    const found = ofFamily(addresses, family)
    return [family, found.length > 0 ? { kind: 'found', addresses: found, ttlMs: null } : { kind: 'none', why: whyNot(name, 'ENODATA') }]
  })
  return Object.fromEntries(entries)
}

/** What this machine knows of names besides DNS. */
export class LocalNames {
  readonly #hosts: string
  /** The last finding, and what it was made of. */
  #key = ''
  #found = new Map<string, string[]>()
  #lookup: Promise<NameAnswer> | null = null

  constructor (hosts = systemHosts) {
    this.#hosts = hosts
  }

  /** The names that stand in the hosts file. @param names in small letters, without a dot at the end */
  async inHosts (names: readonly string[], families: readonly Family[]): Promise<Map<string, NameAnswer>> {
    try {
      const { mtimeMs, size, ino } = await stat(this.#hosts)
      const key = [mtimeMs, size, ino, ...names].join(' ')
      if (key !== this.#key) {
        this.#found = size > maxHostsBytes ? new Map() : findInHosts(await readFile(this.#hosts, 'utf8'), new Set(names))
        this.#key = key
      }
    } catch {
      // Without a hosts file no name stands in it.
      this.#key = ''
      this.#found = new Map()
    }
    return new Map(Array.from(this.#found, ([name, addresses]) => [name, answerOf(name, addresses, families)]))
  }

  /**
   * Asks as every other program of the machine does: search domains, mDNS and all. It may take as long as the system likes, on a
   * thread; we wait `limitMs`, and ask no second time before it has ended.
   */
  async lookup (name: string, families: readonly Family[], limitMs: number): Promise<NameAnswer> {
    const late = (): NameAnswer => Object.fromEntries(families.map((family) => [family, { kind: 'failed', why: whyNot(name, 'ETIMEOUT'), late: true }]))
    if (this.#lookup !== null) return late()
    this.#lookup = systemLookup(name, families).finally(() => { this.#lookup = null })
    let stop = (): void => {}
    try {
      return await Promise.race([this.#lookup, new Promise<NameAnswer>((resolve) => { stop = exactTimer(limitMs, () => { resolve(late()) }) })])
    } finally {
      stop()
    }
  }
}

function systemLookup (name: string, families: readonly Family[]): Promise<NameAnswer> {
  const family = families.length > 1 ? 0 : families[0] === 'ipv4' ? 4 : 6
  return new Promise((resolve) => {
    lookup(name, { all: true, family }, (error, found) => {
      if (error === null) return resolve(answerOf(name, found.map(({ address }) => address), families))
      const code = codeOf(error)
      const why = whyNot(name, code)
      resolve(Object.fromEntries(families.map((each) => [each, code === 'ENOTFOUND' ? { kind: 'none', why } : { kind: 'failed', why, late: false }])))
    })
  })
}
