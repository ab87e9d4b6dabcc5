import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Collects what nothing holds, now: what only weak references lead to is gone afterwards. */
export async function collectGarbage (): Promise<void> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  // A weak reference that was looked at holds its target to the end of that turn of the loop.
  for (let i = 0; i < 2; i++) {
    await new Promise((resolve) => { setImmediate(resolve) })
    collect()
  }
}
