const dayMs = 86_400_000

/** How long before it expires people are told, in days: time enough to find out why nobody renewed it. */
const soonDays = 14

/** Whether a certificate has expired, or soon will; null: neither. @param notAfter ISO 8601 */
export function expiryOf (notAfter: string, now: number): 'expired' | 'soon' | null {
  const left = Date.parse(notAfter) - now
  if (left <= 0) return 'expired'
  return left <= soonDays * dayMs ? 'soon' : null
}
