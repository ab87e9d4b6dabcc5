/** The paths of routes: exact `/status`, parameters `/users/:id`, prefix `/api/*`. */

const parameter = /^:[A-Za-z_][A-Za-z0-9_]*$/
/** A segment that is matched as it stands: RFC 3986 pchar without what routes give a meaning to, and without escapes, which the router decodes before it looks. */
const literal = /^[A-Za-z0-9\-._~!$&'+,;=@]*$/
/** A segment that is put before a path: escapes are forwarded as they are. */
const encoded = /^(?:[A-Za-z0-9\-._~!$&'+,;=@]|%[0-9A-Fa-f]{2})*$/
/** With a path parameter it is a dot segment to some servers, and such a request is refused before any route is looked for. */
const dots = /^(?:\.|%2e){1,2}(?:;|$)/i

const segmentsOf = (path: string): string[] => path.split('/').slice(1)

const segmentProblem = (segment: string, last: boolean): string | null => {
  if (segment === '*' && last) return null
  if (segment.includes('*')) return 'must have "*" only as its last segment, like "/api/*"'
  if (segment.startsWith(':')) return parameter.test(segment) ? null : 'must have parameters like ":id", of letters, digits and "_"'
  if (segment.includes(':')) return 'must have a parameter as a whole segment, like "/users/:id"'
  if (dots.test(segment)) return 'must not have "." or ".." segments'
  return literal.test(segment) ? null : `must be of letters, digits and -._~!$&'+,;=@ between the slashes, without escapes`
}

/** What is wrong with a route's path that starts with "/", or null. */
export const routePathProblem = (path: string): string | null => {
  const segments = segmentsOf(path)
  const names = segments.filter(segment => segment.startsWith(':'))
  for (const [index, segment] of segments.entries()) {
    const problem = segmentProblem(segment, index === segments.length - 1)
    if (problem !== null) return problem
  }
  return new Set(names).size < names.length ? 'must not have two parameters of one name' : null
}

/** What is wrong with a stripPrefix or prefix that starts with "/", or null. */
export const prefixProblem = (prefix: string): string | null => {
  if (prefix.endsWith('/')) return 'must not end with "/"'
  for (const segment of segmentsOf(prefix)) {
    if (dots.test(segment)) return 'must not have "." or ".." segments'
    if (segment.includes('*') || segment.startsWith(':') || !encoded.test(segment)) return 'must be a plain path, without parameters and wildcard, other characters percent-encoded'
  }
  return null
}

/** What is wrong with a rewrite that starts with "/", over a route's path, or null. */
export const rewriteProblem = (rewrite: string, path: string): string | null => {
  const segments = segmentsOf(rewrite)
  const known = segmentsOf(path)
  for (const [index, segment] of segments.entries()) {
    if (segment === '*' && index === segments.length - 1) {
      if (known.at(-1) !== '*') return 'must have "*" only where path ends with "/*"'
    } else if (segment.includes('*')) {
      return 'must have "*" only as its last segment, like "/files/*"'
    } else if (segment.includes(':')) {
      if (!known.includes(segment)) return parameter.test(segment) ? `must have only parameters of path, which ${JSON.stringify(segment)} is not` : 'must have a parameter as a whole segment, like "/people/:id"'
    } else if (dots.test(segment)) {
      return 'must not have "." or ".." segments'
    } else if (!encoded.test(segment)) {
      return 'must be a plain path besides its parameters, without a query, other characters percent-encoded'
    }
  }
  return null
}

/** The path with its parameters unnamed: two routes of one shape match the same paths. */
export const routeShape = (path: string): string => path.replaceAll(/:[^/]+/g, ':')

/** True when every path that the route matches begins with these whole segments. */
export const alwaysStartsWith = (path: string, prefix: string): boolean => {
  const segments = segmentsOf(path)
  return segmentsOf(prefix).every((segment, index) => segment === segments[index])
}
