import { playDrills } from './support.ts'

playDrills({
  slow: 'one of three upstreams is slow: balancers that look at it keep away',
  'post-flood': 'an upstream keeps dying under POSTs: none is delivered twice',
  'retry-storm': 'every upstream fails everything: retries stay within their budget',
  'reload-storm': 'one reload after another loses nothing'
})
