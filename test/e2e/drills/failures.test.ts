import { playDrills } from './support.ts'

playDrills({
  kill: 'one of three upstreams dies: what it had is lost, with a retry nothing is',
  outage: 'all upstreams die: requests are refused, and those upstreams that return are not flooded',
  wedge: 'one of three upstreams wedges: its circuit opens, and a retry moves what waits there'
})
