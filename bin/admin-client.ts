import { readFileSync } from 'node:fs'
import { boundedSignal } from './bounded.ts'
import { UsageError, type Given } from './cli/command.ts'

/** Where a proxy's admin routes are, and the admin token or ''. */
export interface Admin {
  base: string
  token: string
}

/** The proxy gave no answer that could be used, or a refusal: the exit code that tells it, and why in words. */
export class AdminFailure extends Error {
  readonly exitCode: 1 | 3

  constructor (exitCode: 1 | 3, why: string) {
    super(why)
    this.exitCode = exitCode
  }
}

export interface Asked {
  method?: 'GET' | 'POST'
  body?: unknown
  accept?: string
  /** Ends it, beside its own time limit. */
  signal?: AbortSignal
  /** Until the whole answer is there, in ms. */
  waitMs?: number
}

export interface Answered {
  status: number
  text: string
  /** Of JSON; null where it is none. */
  content: unknown
}

/** Why there was no answer, in words; never the request, which holds secrets. */
export function failureText (error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error'
  if (error.name === 'TimeoutError') return 'no answer in time'
  const { cause } = error
  if (!(cause instanceof Error)) return error.message
  return 'code' in cause ? String(cause.code) : cause.message
}

export const urlOf = (base: string, path: string): URL => new URL(path, base.endsWith('/') ? base : `${base}/`)

export const authorization = (token: string): Record<string, string> => token === '' ? {} : { authorization: `Bearer ${token}` }

/** Sends one request to the admin routes, to this address and to no other. @throws whatever fetch does */
export async function request ({ base, token }: Admin, path: string, { method = 'GET', body, accept = 'application/json', signal, waitMs = 10_000 }: Asked = {}): Promise<Answered> {
  const limit = boundedSignal(waitMs, signal)
  let status: number
  let text: string
  try {
    const response = await fetch(urlOf(base, path), {
      redirect: 'manual',
      signal: limit.signal,
      method,
      headers: { accept, ...authorization(token), ...method === 'POST' && { 'content-type': 'application/json' } },
      ...body !== undefined && { body: JSON.stringify(body) }
    })
    ;({ status } = response)
    text = await response.text()
  } finally {
    limit.end()
  }
  let content: unknown = null
  try {
    content = JSON.parse(text)
  } catch { /* an answer that is no JSON has none */ }
  return { status, text, content }
}

/** Where a token comes from, for who was asked for one. */
export const tokenHint = (status: number): string => status === 401 ? '; the token comes from BREAKWATER_ADMIN_TOKEN or --token-file' : ''

function refusalOf ({ status, content }: Answered): string {
  const detail = typeof content === 'object' && content !== null && 'detail' in content ? String(content.detail) : ''
  return `it answers ${status}${detail === '' ? '' : `: ${detail}`}${tokenHint(status)}`
}

/** One request whose answer is wanted as the proxy's word: 2xx, or a status of `also`. @throws AdminFailure */
export async function ask (admin: Admin, path: string, asked: Asked = {}, also: readonly number[] = []): Promise<Answered> {
  let answer: Answered
  try {
    answer = await request(admin, path, asked)
  } catch (error) {
    if (asked.signal?.aborted === true) throw error
    throw new AdminFailure(3, `${admin.base} cannot be reached: ${failureText(error)}`)
  }
  const { status } = answer
  if ((status >= 200 && status < 300) || also.includes(status)) return answer
  const refused = status === 401 || status === 403 || status === 421
  const known = typeof answer.content === 'object' && answer.content !== null
  throw new AdminFailure(!refused && known && status >= 400 ? 1 : 3, `${admin.base}: ${refusalOf(answer)}${known ? '' : ', which no admin route does'}`)
}

const isAdminUrl = (text: string): boolean => {
  const url = URL.canParse(text) ? new URL(text) : null
  return url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' && url.search === '' && url.hash === ''
}

/** The text if it is the URL of admin routes. @throws UsageError */
export function adminUrl (text: string, label: string): string {
  if (!isAdminUrl(text)) throw new UsageError(`${label} must be a URL like http://127.0.0.1:9090, without credentials`)
  return text
}

/** A token is never an argument: those are seen by everybody on a machine. '' where none is given. @throws UsageError */
export function tokenOf (given: Given, env: Readonly<Record<string, string | undefined>>): string {
  const file = given.text('token-file')
  let token = env['BREAKWATER_ADMIN_TOKEN'] ?? ''
  if (file !== undefined) {
    try {
      token = readFileSync(file, 'utf8').trim()
    } catch (error) {
      throw new UsageError(`--token-file ${file} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'error'}`, { cause: error })
    }
    if (token === '') throw new UsageError(`--token-file ${file} is empty`)
  }
  if (!/^[\x21-\x7e]*$/.test(token)) throw new UsageError('the admin token must be of visible ASCII characters')
  return token
}

export const defaultAdmin = 'http://127.0.0.1:9090'

/** The proxy that a command is about. @throws UsageError */
export function adminOf (given: Given, env: Readonly<Record<string, string | undefined>>): Admin {
  const told = given.text('admin')
  const variable = env['BREAKWATER_ADMIN_URL'] ?? ''
  const base = told !== undefined ? adminUrl(told, '--admin') : variable !== '' ? adminUrl(variable, 'BREAKWATER_ADMIN_URL') : defaultAdmin
  return { base, token: tokenOf(given, env) }
}
