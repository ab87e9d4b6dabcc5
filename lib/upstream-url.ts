/** Where an upstream is, taken apart from the text of its `url` option. */
export interface UpstreamUrl {
  /** Its identity within the pool: `host:port` with the port always there, `[::1]:80` for IPv6, or the path of the socket. */
  id: string
  /** What a client connects to: `http://host:port`; `http://localhost` for a socket. */
  origin: string
  /** Prefixed to every forwarded path: empty, or like `/base` without a slash at its end. */
  basePath: string
  /** The path of the unix socket, null for TCP. */
  socketPath: string | null
  /** True for https. */
  secure: boolean
}

const forms = 'http://host:port, https://host:port or unix:/path/to.sock'

/** What sockaddr_un holds on Linux, without its terminating zero. */
const maxSocketPath = 107

/**
 * The text of a URL as it may be shown: without credentials, query and fragment, any of which may hold a secret.
 * What comes before the last `@` is taken for credentials even where a parser would not agree.
 */
export const showUrl = (text: string): string => {
  const at = text.lastIndexOf('@')
  const scheme = /^[a-z][a-z0-9+.-]*:\/*/i.exec(text)?.[0] ?? ''
  const bare = at < scheme.length ? text : `${scheme}[redacted]${text.slice(at)}`
  return JSON.stringify(bare.replace(/[?#].*$/s, '').slice(0, 200))
}

const refuse = (text: string, why: string): never => {
  throw new TypeError(`${why}, got ${showUrl(text)}`)
}

const parseSocket = (text: string): UpstreamUrl => {
  const socketPath = text.slice('unix:'.length).replace(/^\/\/(?=\/)/, '')
  const segments = socketPath.split('/').slice(1)
  if (!socketPath.startsWith('/')) refuse(text, 'must have an absolute socket path, like unix:/run/app.sock')
  if (segments.some(segment => segment === '' || segment === '.' || segment === '..')) {
    refuse(text, 'must have a plain socket path, without empty, "." or ".." segments')
  }
  if (/[?#]/.test(socketPath)) refuse(text, 'must have a socket path without query and fragment')
  if (new TextEncoder().encode(socketPath).length > maxSocketPath) refuse(text, `must have a socket path of at most ${maxSocketPath} bytes`)
  return { id: socketPath, origin: 'http://localhost', basePath: '', socketPath, secure: false }
}

/**
 * Takes an upstream's URL apart. Hosts are lower-cased, default ports filled in, and a slash at the end of the base path dropped,
 * so that two texts for one upstream give one id.
 * @throws TypeError with a message that says what is allowed and shows the text without credentials, query and fragment
 */
export const parseUpstreamUrl = (text: string): UpstreamUrl => {
  // The WHATWG parser drops tabs and newlines and turns backslashes into slashes: what would be used is not what was written.
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u0020\u007f\\]/.test(text)) refuse(text, `must be ${forms}, without spaces, control characters and backslashes`)
  if (/^unix:/i.test(text)) return parseSocket(text)
  const authority = /^https?:\/\/([^/?#]*)/i.exec(text)?.[1]
  if (authority === undefined) return refuse(text, `must be ${forms}`)
  if (authority.includes('@')) refuse(text, 'must not have credentials')
  if (/[?#]/.test(text)) refuse(text, 'must not have a query or a fragment')
  if (authority.endsWith(':')) refuse(text, 'must have a port after the colon')
  let url: URL
  try {
    url = new URL(text)
  } catch {
    return refuse(text, `must be ${forms} with a valid host and a port from 1 to 65535`)
  }
  // The WHATWG parser lets `*`, `{` and the like into a host; no name of a server has them, but a forgotten ${VARIABLE} does.
  if (!/^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/.test(url.hostname)) refuse(text, `must be ${forms} with a valid host and a port from 1 to 65535`)
  if (url.port === '0') refuse(text, 'must have a port from 1 to 65535')
  const secure = url.protocol === 'https:'
  const port = url.port === '' ? (secure ? '443' : '80') : url.port
  return {
    id: `${url.hostname}:${port}`,
    origin: url.origin,
    basePath: url.pathname.replace(/\/+$/, ''),
    socketPath: null,
    secure
  }
}

/**
 * The id of the upstream at a URL: `host:port`, or the path of the socket.
 * @throws TypeError as parseUpstreamUrl does
 */
export const upstreamId = (url: string): string => parseUpstreamUrl(url).id
