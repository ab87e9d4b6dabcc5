import type { Random } from '../random.ts'

/** 0 .. count-1 in random order (Fisher-Yates). */
export function shuffled (count: number, random: Random): Int32Array {
  const order = Int32Array.from({ length: count }, (_, i) => i)
  for (let i = count - 1; i > 0; i--) {
    const other = Math.floor(random() * (i + 1))
    const held = order[i]!
    order[i] = order[other]!
    order[other] = held
  }
  return order
}
