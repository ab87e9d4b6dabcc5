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
