/** Which certificate a client gets: by the names that certificates are for. */

const name = /^(?:\*\.)?[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*$/

/** A name as it is compared: lower-case, without the dot of the root; null where it is no name of a host, nor `*.` and one. */
export function serverName (text: string): string | null {
  const lower = text.toLowerCase()
  const plain = lower.endsWith('.') ? lower.slice(0, -1) : lower
  return plain.length <= 253 && name.test(plain) ? plain : null
}

/** The names of hosts in a certificate's subjectAltName, as Node's X509Certificate has it (`DNS:a.example, IP Address:10.0.0.1`). */
export function certificateNames (subjectAltName: string | undefined): string[] {
  if (subjectAltName === undefined) return []
  const names: string[] = []
  for (const entry of subjectAltName.split(', ')) {
    // Anything that could be mistaken for several entries is in quotes there, and no name.
    const found = entry.startsWith('DNS:') ? serverName(entry.slice(4)) : null
    if (found !== null && !names.includes(found)) names.push(found)
  }
  return names
}

/** What belongs to names: exact ones, and `*.` for exactly one label (RFC 6125, section 6.4.3). The first of equal names counts. */
export class NameTable<T> {
  readonly #values = new Map<string, T>()

  add (names: readonly string[], value: T): void {
    for (const each of names) {
      const plain = serverName(each)
      if (plain !== null && !this.#values.has(plain)) this.#values.set(plain, value)
    }
  }

  /** @param asked the name that a client asks for; an exact name goes before a wildcard */
  find (asked: string): T | undefined {
    const lower = asked.toLowerCase()
    const plain = lower.endsWith('.') ? lower.slice(0, -1) : lower
    // Nobody's name begins so: it would find the value of the wildcard.
    if (plain.startsWith('*')) return undefined
    const exact = this.#values.get(plain)
    const dot = plain.indexOf('.')
    return exact !== undefined || dot < 1 ? exact : this.#values.get(`*${plain.slice(dot)}`)
  }
}
