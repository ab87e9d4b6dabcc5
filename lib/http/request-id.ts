const wellFormed = /^[A-Za-z0-9._:-]{1,128}$/

/** True for an id that we take over from a trusted peer: it stands in logs, headers and URLs as it is. */
export function isRequestId (id: unknown): id is string {
  return typeof id === 'string' && wellFormed.test(id)
}
