/** Fields that a request head may have; with more it is refused. */
export const maxRequestFields = 2000

/** For Node's `server.maxHeadersCount`: one more than are forwarded, so that a head which lost some is known. */
export const keptRequestFields = maxRequestFields + 1

/** What Node keeps of a head where `maxHeadersCount` is null. */
const keptByDefault = 1000

/**
 * True when a head may have lost fields: Node drops what is over the server's limit silently.
 * @param entries length of `rawHeaders`: names and values
 * @param kept the server's `maxHeadersCount`: null for Node's own default, 0 for no limit; undefined where nothing is ever dropped
 */
export function mayHaveLostFields (entries: number, kept: number | null | undefined): boolean {
  if (kept === undefined || kept === 0) return false
  return entries >= 2 * (kept ?? keptByDefault)
}
