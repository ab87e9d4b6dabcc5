/** Two signals of one kind within this time, in ms, are one: nobody presses a key twice so fast. */
const sameMs = 250

/**
 * Ctrl-C under npm comes twice, within a few milliseconds: from the terminal to the whole process group, and from npm, which
 * passes on what it gets. The second would cut the drain that the first began. Repetitions are dropped before anybody hears
 * them; and a listener that always stands keeps the system's default, sudden death, from coming between two others.
 */
export function mergeRepeatedSignals (target: NodeJS.Process, now: () => number = () => performance.now()): void {
  const last = new Map<string | symbol, number>()
  const emit = target.emit.bind(target) as (name: string | symbol, ...args: unknown[]) => boolean
  const merged = (name: string | symbol, ...args: unknown[]): boolean => {
    if (name !== 'SIGINT' && name !== 'SIGTERM') return emit(name, ...args)
    const before = last.get(name)
    last.set(name, now())
    return before !== undefined && now() - before < sameMs ? true : emit(name, ...args)
  }
  target.emit = merged as typeof target.emit
  for (const name of ['SIGINT', 'SIGTERM'] as const) target.on(name, () => {})
}
