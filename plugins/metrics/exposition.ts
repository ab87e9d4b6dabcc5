import { Registry, type Metric, type OpenMetricsContentType } from 'prom-client'
import { Family } from './family.ts'

/** `text`: Prometheus 0.0.4 · `openmetrics`: OpenMetrics 1.0.0 */
export type ExpositionFormat = 'text' | 'openmetrics'

interface Described { name: string, help: string, type: string }
/** What of a metric is written. */
interface Source extends Described { get: () => Promise<object> }

/** How a registry of prom-client writes one metric, which its types keep to themselves. */
interface Writer { getMetricsAsString (metric: object): Promise<string> }

/**
 * All metrics of a registry, as its own `metrics()` writes them. But each caller has its format, and families of ours are written piece
 * by piece, so that the event loop is not held up for as long as all of them take.
 */
export async function exposition (registry: Registry, format: ExpositionFormat): Promise<string> {
  const open = format === 'openmetrics'
  const writer = (open ? openMetricsRegistry() : registry) as unknown as Writer
  const texts: string[] = []
  for (const metric of registry.getMetricsAsArray() as unknown as Array<Metric & Source>) {
    const name = open ? familyName(metric) : metric.name
    texts.push(metric instanceof Family ? await inPieces(writer, metric, name) : await writer.getMetricsAsString(open ? copyOf(metric, name) : metric))
  }
  return open ? `${texts.join('\n')}\n# EOF\n` : `${texts.join('\n\n')}\n`
}

/**
 * The expositions of one format: one is written at a time, and whoever comes meanwhile shares the next, which has all that was counted
 * when they came. However many ask at once, there is work and memory for two.
 */
export class Expositions {
  readonly #write: () => Promise<string>
  #running: Promise<string> | null = null
  #next: Promise<string> | null = null

  constructor (registry: Registry, format: ExpositionFormat) {
    this.#write = () => exposition(registry, format)
  }

  expose (): Promise<string> {
    if (this.#running === null) return this.#running = this.#write().finally(() => { this.#running = null })
    return this.#next ??= this.#running.catch(() => {}).then(() => {
      this.#next = null
      return this.expose()
    })
  }
}

function openMetricsRegistry (): Registry<OpenMetricsContentType> {
  const registry = new Registry<OpenMetricsContentType>()
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  return registry
}

/** Of a counter: without the `_total` that its samples have. */
const familyName = ({ name, type }: Described): string => type === 'counter' ? name.replace(/_total$/, '') : name

/** One that can be written under another name: prom-client keeps that of its own metrics. */
const copyOf = (metric: Source, name: string): Source =>
  ({ name, help: metric.help, type: metric.type, get: async () => ({ ...await metric.get(), name }) })

async function inPieces (writer: Writer, family: Family, name: string): Promise<string> {
  const texts: string[] = []
  for await (const piece of family.pieces()) {
    const text = await writer.getMetricsAsString({ get: async () => ({ ...piece, name }) })
    texts.push(texts.length === 0 ? text : withoutHead(text))
  }
  return texts.join('\n')
}

/** Its first two lines are HELP and TYPE, which a family has once. */
const withoutHead = (text: string): string => text.slice(text.indexOf('\n', text.indexOf('\n') + 1) + 1)
