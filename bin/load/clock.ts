/** Milliseconds of the system's monotonic clock, which all processes of a machine read alike. */
export const machineNow = (): number => Number(process.hrtime.bigint()) / 1e6
