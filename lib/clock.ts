/**
 * A monotonic clock in milliseconds. Policies never read one: whoever calls them passes the number in.
 * Wall-clock time is for people only and is taken where a record is written.
 */
export type Clock = () => number

/** The process's monotonic clock: it never jumps when the wall clock is set. */
export const monotonic: Clock = () => performance.now()
