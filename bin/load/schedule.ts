import { seededRandom } from '../../lib/random.ts'

/**
 * When each request is due, in ms after the start: one in each slot of 1 / rate seconds, at a moment that is drawn within its slot.
 * The rate is constant, and nothing that takes turns falls into step with it. The same seed gives the same moments.
 */
export function * dueTimes (rate: number, seconds: number, seed: number): Generator<number, void> {
  const random = seededRandom(seed)
  const slotMs = 1000 / rate
  const count = Math.round(rate * seconds)
  for (let slot = 0; slot < count; slot++) yield (slot + random()) * slotMs
}
