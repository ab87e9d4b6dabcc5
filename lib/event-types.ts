/**
 * Every type of event that Breakwater itself puts into the journal, with what it tells. Plugins of others may record more. The page of
 * the journal has this table.
 */
export const eventTypes = {
  proxy_started: 'The listener is open.',
  shutdown_started: 'The way down has begun: when the listener closes, and how long accepted requests may take.',
  shutdown_incomplete: 'The grace was over, and so many connections were cut with an unanswered request or an open WebSocket.',
  breaker_transition: 'A breaker changed its state: from and to, the cause, the window as it was, what the last failure was, and the ids of the requests that failed, or waited in vain.',
  health_changed: 'Checks have found an upstream healthy, or not.',
  health_removal_held: 'An upstream failed its checks and is not removed yet, because too many of its pool were lately.',
  health_first_check_failed: 'The first check of an upstream that began as unhealthy failed: it gets nothing yet, and why.',
  health_check_inconclusive: 'Checks of an upstream say nothing, by a fault of our own; what is believed stays. Told once, until one says something.',
  upstream_ejected: 'Passive observation has taken an upstream out, and until when.',
  ejection_held: 'It would have, and did not: too many of the pool are out, or it only observes.',
  ejection_ended: 'An ejection was ended before its time, because too few would be left without that member.',
  upstream_draining: 'An operator has taken an upstream out of rotation.',
  upstream_ready: 'It is back in rotation, by an operator or because its time was over.',
  members_changed: 'Upstreams have come into a pool, or gone.',
  pool_panic: 'So few upstreams of a pool are left that all are used; or that is over, and how long it lasted.',
  retry_budget_spent: 'The budget of a pool has begun to refuse further attempts.',
  retry_budget_recovered: 'It has refused none for ten seconds: how many it had, and how long that lasted.',
  shed_begun: 'Requests are shed: the reason of the first one, the limit and the readings of that moment.',
  shed_ended: 'None has been shed for five seconds: how many were, by reason, the most within a second, and how long it lasted.',
  discovery_changed: 'A source has given another list of upstreams.',
  discovery_failed: 'A source has failed, and why.',
  discovery_refused: 'A list was not taken because of what is in it; the last good one stays.',
  discovery_recovered: 'It gives lists again.',
  discovery_cut: 'A list has more upstreams than are used. Told once, until one has not.',
  config_reloaded: 'Another configuration is in force: its version, what made it be read, the reason that was given, what differs.',
  config_rejected: 'A configuration was refused, with everything that is wrong with it and the reason that was given for the reload.',
  certificates_reloaded: 'The certificates of the listener were read again.',
  certificates_rejected: 'They were, and are wrong; those that were in use stay.',
  certificate_expires_soon: 'A certificate of the listener ends within 14 days; at the start, after a change, and once a day.',
  certificate_expired: 'It has ended; likewise.',
  admin_write: 'An operator did something: what, the reason that was given, and the address that it came from.',
  webhook_failing: 'Events cannot be delivered to the webhook; they are kept and tried again.',
  webhook_recovered: 'They can be again: how long it lasted, and how many had been dropped.'
} as const

export type EventType = keyof typeof eventTypes
