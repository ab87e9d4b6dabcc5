import { readdirSync, readFileSync } from 'node:fs'
import { constants, PerformanceObserver, type PerformanceEntry } from 'node:perf_hooks'
import { Family, single, type FamilyType, type Labels, type Sample } from './family.ts'
import { Histogram } from './histogram.ts'

const gcBounds = [0.001, 0.01, 0.1, 1, 2, 5]
const gcKinds: ReadonlyMap<number, string> = new Map([
  [constants.NODE_PERFORMANCE_GC_MAJOR, 'major'],
  [constants.NODE_PERFORMANCE_GC_MINOR, 'minor'],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, 'incremental'],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, 'weakcb']
])

/** What cannot be read now, because descriptors have run out or the system does not tell it, is left out: no scrape fails for it. */
function readable (read: () => number): Sample[] {
  try {
    const value = read()
    return Number.isFinite(value) ? single(value) : []
  } catch {
    return []
  }
}

/** A line of a file of the system, as `VmRSS:  1234 kB`. */
function lineOf (file: string, name: string): string {
  return readFileSync(file, 'latin1').split('\n').find((line) => line.startsWith(name))?.slice(name.length) ?? ''
}

const kibibytes = (name: string): number => Number.parseInt(lineOf('/proc/self/status', `${name}:`), 10) * 1024

const resources = (): Sample[] => {
  const counts = new Map<string, number>()
  for (const type of process.getActiveResourcesInfo()) counts.set(type, (counts.get(type) ?? 0) + 1)
  return Array.from(counts, ([type, value]) => ({ labels: { type }, value }))
}

interface CollectionEntry extends PerformanceEntry { detail?: { kind?: number } }

/**
 * The process, under the names that prom-client has for it, read when somebody asks. Its own collectors are not used: they time the
 * event loop with a timer of 10 ms for ever, and there is no way to take only the others.
 */
export class ProcessMetrics {
  readonly #gc = new Map<string, Histogram>(Array.from(gcKinds.values(), (kind) => [kind, new Histogram(gcBounds, false)]))
  readonly #observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) this.#gc.get(gcKinds.get((entry as CollectionEntry).detail?.kind ?? -1) ?? '')?.observe(entry.duration / 1000, null, 0)
  })

  constructor () {
    this.#observer.observe({ entryTypes: ['gc'] })
  }

  close (): void {
    this.#observer.disconnect()
  }

  families (): Family[] {
    const of = (type: FamilyType, name: string, help: string, read: () => number): Family => new Family(type, name, help, () => readable(read))
    const { version } = process
    const [major = '', minor = '', patch = ''] = version.slice(1).split('.')
    const versionLabels: Labels = { version, major, minor, patch }
    const startedAt = Date.now() / 1000 - process.uptime()
    return [
      of('counter', 'process_cpu_user_seconds_total', 'Time of the processor in the program, in seconds.', () => process.cpuUsage().user / 1e6),
      of('counter', 'process_cpu_system_seconds_total', 'Time of the processor in the system for the program, in seconds.', () => process.cpuUsage().system / 1e6),
      of('counter', 'process_cpu_seconds_total', 'Both together.', () => { const { user, system } = process.cpuUsage(); return (user + system) / 1e6 }),
      of('gauge', 'process_start_time_seconds', 'When the process was started, in seconds since 1970.', () => startedAt),
      of('gauge', 'process_resident_memory_bytes', 'Resident memory.', () => process.memoryUsage.rss()),
      of('gauge', 'process_virtual_memory_bytes', 'Virtual memory.', () => kibibytes('VmSize')),
      of('gauge', 'process_heap_bytes', 'Data of the process.', () => kibibytes('VmData')),
      of('gauge', 'process_open_fds', 'Open descriptors.', () => readdirSync('/proc/self/fd').length - 1),
      of('gauge', 'process_max_fds', 'Descriptors that may be open.', () => Number.parseInt(lineOf('/proc/self/limits', 'Max open files'), 10)),
      of('gauge', 'nodejs_heap_size_total_bytes', 'Heap of the program.', () => process.memoryUsage().heapTotal),
      of('gauge', 'nodejs_heap_size_used_bytes', 'Heap that is in use.', () => process.memoryUsage().heapUsed),
      of('gauge', 'nodejs_external_memory_bytes', 'Memory of objects outside of the heap.', () => process.memoryUsage().external),
      new Family('gauge', 'nodejs_active_resources', 'What keeps the event loop alive, by type.', resources),
      new Family('histogram', 'nodejs_gc_duration_seconds', 'Garbage collections, by kind.', () =>
        Array.from(this.#gc, ([kind, histogram]) => histogram.samples('nodejs_gc_duration_seconds', { kind })).flat()),
      new Family('gauge', 'nodejs_version_info', 'The version of Node.js.', () => [{ labels: versionLabels, value: 1 }])
    ]
  }
}
