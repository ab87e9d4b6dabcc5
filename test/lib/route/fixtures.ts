/** Routes and requests as texts: `[METHOD,METHOD] [host]/path[?query] [name:value ...]`. */
import type { RouteOptions } from '../../../config/schema.ts'
import type { RoutedRequest } from '../../../lib/route/table.ts'

const pattern = /^(?:([A-Z,]+) )?([^/ ?]*)([/*][^ ?]*)?(?:\?(\S*))?((?: [^ :]+:\S*)*)$/

function parts (text: string): { methods: string[] | undefined, host: string, path: string, query: Record<string, string>, search: string, headers: Record<string, string> } {
  const [, methods, host = '', path = '/', search, fields = ''] = pattern.exec(text) ?? []
  const pairs = (list: string[], sign: string) => Object.fromEntries(list.filter((each) => each !== '').map((each): [string, string] => {
    const at = each.indexOf(sign)
    return [each.slice(0, at), each.slice(at + 1)]
  }))
  return {
    methods: methods?.split(','),
    host,
    path,
    query: pairs(search?.split('&') ?? [], '='),
    search: search === undefined ? '' : `?${search}`,
    headers: pairs(fields.split(' '), ':')
  }
}

/** It goes to a pool that is named like its text. */
export function route (text: string): RouteOptions {
  const { methods, host, path, query, headers } = parts(text)
  return {
    path,
    pool: text,
    ...methods !== undefined && { methods },
    ...host !== '' && { host },
    ...Object.keys(query).length > 0 && { query },
    ...Object.keys(headers).length > 0 && { headers }
  }
}

export function request (text: string): RoutedRequest {
  const { methods: [method] = ['GET'], host, path, search, headers } = parts(text)
  return { method: method as string, authority: host, path, search, headers }
}
