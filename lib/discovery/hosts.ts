import { canonicalAddress } from './members.ts'
import { plainName } from './srv.ts'

/**
 * What a hosts file (hosts(5)) says about some names. Addresses with a zone are passed over.
 * @param names in small letters, without a dot at the end
 * @returns the names that are there, with their addresses in the order of the file
 */
export function findInHosts (text: string, names: ReadonlySet<string>): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...aliases] = line.replace(/#.*$/, '').trim().split(/\s+/)
    const wanted = aliases.map(plainName).filter((name) => names.has(name))
    if (wanted.length === 0) continue
    const canonical = canonicalAddress(address)
    if (canonical === null) continue
    for (const name of wanted) {
      const known = found.get(name)
      if (known === undefined) found.set(name, [canonical])
      else if (!known.includes(canonical)) known.push(canonical)
    }
  }
  return found
}
