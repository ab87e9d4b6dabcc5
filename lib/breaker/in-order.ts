/**
 * Hands events on one after the other, each once, in the order in which they arose: an event that arises while another is
 * being delivered waits for its turn. `deliver` must not throw; if it does, the rest waits for the next event.
 */
export function inOrder<T> (deliver: (event: T) => void): (event: T) => void {
  const waiting: T[] = []
  let delivering = false
  return (event) => {
    waiting.push(event)
    if (delivering) return
    delivering = true
    try {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) deliver(next)
    } finally {
      delivering = false
    }
  }
}
