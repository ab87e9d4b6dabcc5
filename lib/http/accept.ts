const tokens = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const qualityPattern = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/
const range = new RegExp(`^(${tokens})/(${tokens})$`)

interface MediaRange {
  readonly type: string
  /** Without `q`; lower-case names, values without quotes. */
  readonly parameters: ReadonlyMap<string, string>
  readonly quality: number
}

function rangesOf (accept: string): MediaRange[] {
  return accept.split(',').flatMap((text) => {
    const [type = '', ...rest] = text.split(';').map((part) => part.trim())
    if (!range.test(type)) return []
    const parameters = new Map(rest.map((part): [string, string] => {
      const [name = '', value = ''] = part.split('=', 2).map((side) => side.trim())
      return [name.toLowerCase(), value.replace(/^"(.*)"$/, '$1')]
    }))
    const q = parameters.get('q')
    parameters.delete('q')
    return [{ type: type.toLowerCase(), parameters, quality: q === undefined ? 1 : qualityPattern.test(q) ? Number(q) : 0 }]
  })
}

/**
 * How much a client wants a media type, by its Accept field (RFC 9110 section 12.5.1); 0: not at all. The most specific range counts:
 * the type with a version, then the type, then the wildcards. A range with another version than one of these does not match; other
 * parameters are not looked at.
 * @param versions that can be given; a client that names none takes any
 */
export function acceptQuality (accept: string, type: string, versions: readonly string[]): number {
  const [main = ''] = type.split('/')
  let best = 0
  let specific = -1
  for (const { type: given, parameters, quality } of rangesOf(accept)) {
    const version = parameters.get('version')
    const rank = given === '*/*' ? 0 : given === `${main}/*` ? 1 : given !== type ? -1 : version === undefined ? 2 : versions.includes(version) ? 3 : -1
    if (rank < 0 || rank < specific) continue
    best = rank > specific ? quality : Math.max(best, quality)
    specific = rank
  }
  return best
}

/** How much a client wants a content coding, by its Accept-Encoding field (RFC 9110 section 12.5.3); 0: not at all, also where it says nothing. */
export function codingQuality (accept: string, coding: string): number {
  let any = 0
  for (const each of accept.split(',')) {
    const [name = '', ...rest] = each.split(';').map((part) => part.trim().toLowerCase())
    const q = rest.find((part) => part.startsWith('q='))?.slice(2)
    const quality = q === undefined ? 1 : qualityPattern.test(q) ? Number(q) : 0
    if (name === coding) return quality
    if (name === '*') any = quality
  }
  return any
}
