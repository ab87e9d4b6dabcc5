const plain = /^[A-Za-z0-9_-]+$/

/** The path of a key below another path: `pools.shop`, or `pools["my.pool"]` where a dot would mislead. */
export const keyPath = (parent: string, key: string): string => {
  if (!plain.test(key)) return `${parent}[${JSON.stringify(key.slice(0, 64))}]`
  return parent === '' ? key : `${parent}.${key}`
}

/** The path of a list's element: `upstreams[0]`. */
export const indexPath = (parent: string, index: number): string => `${parent}[${index}]`

/** A path that begins below another one: `pools` and `shop.tls` give `pools.shop.tls`. */
export const joinPath = (parent: string, path: string): string =>
  path === '' || path.startsWith('[') ? `${parent}${path}` : `${parent}.${path}`
