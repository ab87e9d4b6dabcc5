import { setImmediate } from 'node:timers/promises'

/** Does what takes long piece by piece, so that requests have their turn between. @param work stops after each piece @param atOnce pieces that take as long as a few requests */
export async function inTurns<T> (work: Generator<undefined, T>, atOnce: number): Promise<T> {
  for (let pieces = 1; ; pieces++) {
    const { done, value } = work.next()
    if (done === true) return value
    if (pieces % atOnce === 0) await setImmediate()
  }
}
