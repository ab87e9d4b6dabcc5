/** Case, dashes and underscores aside: `max_in_flight` is a try at `maxInFlight`. */
const squash = (name: string) => name.toLowerCase().replace(/[-_]/g, '')

/** Edits that turn one name into the other: insert, delete, replace, or swap two neighbours (Damerau-Levenshtein, optimal string alignment). */
const distance = (a: string, b: string): number => {
  let before: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      let best = Math.min(previous[column]! + 1, current[column - 1]! + 1, previous[column - 1]! + (same ? 0 : 1))
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) best = Math.min(best, before[column - 2]! + 1)
      current.push(best)
    }
    before = previous
    previous = current
  }
  return previous[b.length]!
}

/** Names beyond these are not compared: they are pools of somebody who tries what we can take. */
const maxCompared = 500

/** The known name that was probably meant, or null. One that only lacks its unit or its beginning (`timeout` for `timeoutMs`) is near too. */
export const nearest = (name: string, known: readonly string[]): string | null => {
  const wanted = squash(name.slice(0, 64))
  let best: string | null = null
  let bestScore = Math.max(1, Math.floor(wanted.length / 3)) + 1
  for (const candidate of known.slice(0, maxCompared)) {
    const other = squash(candidate.slice(0, 64))
    const contained = wanted.length >= 4 && other.length >= 4 && (other.startsWith(wanted) || wanted.startsWith(other))
    const score = contained ? Math.min(1, distance(wanted, other)) : distance(wanted, other)
    if (score < bestScore) {
      best = candidate
      bestScore = score
    }
  }
  return best
}
