import type { FastifyInstance } from 'fastify'
import type { ShedReason, SheddingView } from '../load-shedding.ts'
import { Family, single } from './family.ts'

/** Before the route is known a request counts as one of normal priority. */
const shed: ReadonlyArray<readonly [ShedReason, 'normal' | 'low']> = [['shed_capacity', 'normal'], ['shed_pressure', 'normal'], ['shed_priority', 'normal'], ['shed_priority', 'low']]

/** The gate, and what presses on the process. */
export function gateFamilies (app: FastifyInstance): Family[] {
  const gauge = (name: string, help: string, value: (view: SheddingView) => number): Family => new Family('gauge', name, help, () => single(value(app.shedding.view())))
  return [
    new Family('counter', 'edge_shed_total', 'Requests that were refused for capacity.', () =>
      shed.map(([reason, priority]) => ({ labels: { reason, priority }, value: app.shedding.refused(reason, priority) }))),
    gauge('edge_in_flight', 'Requests that hold a place at the gate.', ({ inFlight }) => inFlight),
    gauge('edge_in_flight_limit', 'Places at the gate.', ({ maxInFlight }) => maxInFlight),
    gauge('edge_under_pressure', '1 while a limit of the process itself is exceeded, else 0.', ({ pressure }) => Number(pressure.under)),
    gauge('edge_event_loop_delay_seconds', 'Mean delay of the event loop in the last second.', ({ pressure }) => pressure.eventLoopDelayMs / 1000),
    gauge('edge_event_loop_utilization', 'Share of the last second in which the event loop was busy.', ({ pressure }) => pressure.eventLoopUtilization)
  ]
}
