import { urls } from './peer.ts'

const services = 250

/**
 * A configuration of a thousand routes and a pool for all of the upstreams: of each service a prefix, one with a parameter, an exact
 * path, and one that is for a method, a host and a header; the last one is for all the rest.
 */
export function largeConfig (upstreams: readonly number[]): object {
  const routes = Array.from({ length: services }, (_, i) => {
    const service = `/service-${500 + i}`
    return [
      { path: `${service}/*`, pool: 'shop' },
      { path: `${service}/orders/:id`, pool: 'shop' },
      { path: `${service}/status`, pool: 'shop', priority: 'high' },
      { path: `${service}/orders`, methods: ['POST'], host: `shop-${i}.example.com`, headers: { 'x-version': '2' }, pool: 'shop' }
    ]
  }).flat()
  // A thousand with the one for all the rest.
  return { pools: { shop: { upstreams: urls(upstreams).map(url => ({ url })) } }, routes: [...routes.slice(1), { path: '/*', pool: 'shop' }] }
}
