/** The options of tracing. */
import type { Static } from 'typebox'
import { flag, oneOf, section } from './schema-kit.ts'

export const TracingOptions = section('Distributed traces by OpenTelemetry. Nothing is traced, and nothing is spent, unless the process has registered an SDK.', {
  enabled: flag(true, 'Trace where an SDK is registered.'),
  continueFrom: oneOf(['anybody', 'trusted'], 'anybody', 'Whose traces are continued. anybody: every client\'s. trusted: those of trustedProxies; for others a trace begins here, and their trace fields and baggage go no further.')
})

export type TracingOptions = Static<typeof TracingOptions>
