/** The admin routes. All paths are relative to the page, so that it may lie below any prefix. */
import { learnClock } from './format.js'

const tokenKey = 'breakwater-token'

/** An answer that is none: what the proxy said, or that it said nothing. */
export class ApiError extends Error {
  constructor (status, message, body = null) {
    super(message)
    this.status = status
    this.body = body
  }
}

export const hasToken = () => sessionStorage.getItem(tokenKey) !== null
export const keepToken = (token) => { sessionStorage.setItem(tokenKey, token) }
export const forgetToken = () => { sessionStorage.removeItem(tokenKey) }

/** A token as its bytes of UTF-8, which is how the proxy compares it; a header takes no other characters. */
const latin1 = (text) => String.fromCharCode(...new TextEncoder().encode(text))

function headers (more = {}) {
  const token = sessionStorage.getItem(tokenKey)
  return token === null ? more : { ...more, authorization: `Bearer ${latin1(token)}` }
}

/** @throws ApiError for every status but 2xx and where there is no answer, with status 0 */
async function ask (path, options = {}, timeoutMs = 10000) {
  let response
  try {
    response = await fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(timeoutMs), ...options })
    learnClock(response.headers.get('date'))
    const body = await response.json()
    if (response.ok) return body
    throw new ApiError(response.status, body.detail ?? response.statusText, body)
  } catch (error) {
    if (error instanceof ApiError) throw error
    throw response === undefined || response.ok ? new ApiError(0, 'The proxy does not answer') : new ApiError(response.status, response.statusText)
  }
}

export const get = (path) => ask(path, { headers: headers() })

/** What the proxy may not have: null where there is no such route. */
export async function getIfThere (path) {
  try {
    return await get(path)
  } catch (error) {
    if (error.status === 404) return null
    throw error
  }
}

/** @param body undefined: none at all, which is not an empty object for every route */
export const post = (path, body) => ask(path, { method: 'POST', headers: headers({ 'content-type': 'application/json' }), ...body !== undefined && { body: JSON.stringify(body) } }, 30000)

/** A stream of server-sent events. EventSource cannot send a token. */
export function openStream (lastEventId, signal) {
  const more = { accept: 'text/event-stream', ...lastEventId > 0 && { 'last-event-id': String(lastEventId) } }
  return fetch('events/stream', { headers: headers(more), cache: 'no-store', signal })
}

export const pathOf = (...parts) => parts.map((part) => encodeURIComponent(part)).join('/')
