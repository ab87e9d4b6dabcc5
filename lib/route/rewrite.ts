/**
 * The path that the upstream gets: the prefix taken off once, the route's and the upstream's own put before it once, the rest
 * byte for byte. `OPTIONS *` keeps its target.
 */
export function forwardedPath (path: string, stripPrefix: string | undefined, prefix: string | undefined, basePath: string): string {
  if (path === '*') return path
  const rest = stripPrefix === undefined ? path : withoutPrefix(path, stripPrefix)
  return prefix === undefined && basePath === '' ? rest : basePath + (prefix ?? '') + rest
}

/** "/api" is no prefix of "/apiary". An escaped letter counts as the letter, as it did when the route was found; "%2F" is no slash. */
function withoutPrefix (path: string, prefix: string): string {
  let at = 0
  for (let i = 0; i < prefix.length; i++) {
    const escaped = path.charCodeAt(at) === percent
    const code = escaped ? parseInt(path.slice(at + 1, at + 3), 16) : path.charCodeAt(at)
    if (code !== prefix.charCodeAt(i) || (escaped && code === slash)) return path
    at += escaped ? 3 : 1
  }
  if (at === path.length) return '/'
  return path.charCodeAt(at) === slash ? path.slice(at) : path
}

const slash = 47
const percent = 37

/** Makes the path that is forwarded out of the request's, neither with a query. */
export type Rewrite = (path: string) => string

/**
 * A template like "/v2/people/:id/*" over the route's path, like "/users/:id/*". What it takes over from a request is whole segments
 * as they came, still percent-encoded, and the rest behind the prefix: "%2F" stays inside its segment, and where no segment of the
 * request is a dot segment none can arise. A template that ends with "/*" gives the bare form for the bare form: "/users/7" becomes
 * "/v2/people/7", and "/" where nothing would be left.
 * @param template names only parameters of the route's path, and has "*" as its last segment only where the path has
 */
export function compileRewrite (routePath: string, template: string): Rewrite {
  const route = routePath.split('/')
  const wanted = template.split('/')
  const keepsRest = wanted.at(-1) === '*'
  if (keepsRest) wanted.pop()
  const rest = keepsRest ? route.length - 1 : -1
  /** Text between the segments that are taken over, and for each of these its place in the request's path. */
  const texts = ['']
  const places: number[] = []
  for (const segment of wanted.slice(1)) {
    texts[places.length] += '/'
    if (segment.startsWith(':')) {
      places.push(route.indexOf(segment))
      texts[places.length] = ''
    } else {
      texts[places.length] += segment
    }
  }
  return (path) => {
    if (path === '*') return path
    let rewritten = texts[0] as string
    for (let i = 0; i < places.length; i++) rewritten += segmentAt(path, places[i] as number) + (texts[i + 1] as string)
    if (rest !== -1) {
      const at = slashBefore(path, rest)
      if (at !== -1) rewritten += path.slice(at)
    }
    return rewritten === '' ? '/' : rewritten
  }
}

/** Where the slash before a segment is, the first segment being 1; -1 where the path has not so many. */
function slashBefore (path: string, place: number): number {
  let at = 0
  for (let i = 1; i < place && at !== -1; i++) at = path.indexOf('/', at + 1)
  return at
}

function segmentAt (path: string, place: number): string {
  const start = slashBefore(path, place)
  if (start === -1) return ''
  const end = path.indexOf('/', start + 1)
  return path.slice(start + 1, end === -1 ? path.length : end)
}
