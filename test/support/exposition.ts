/** Strict readers of what is exposed to Prometheus: anything that the grammar does not allow is an error. */

export interface ReadExemplar {
  labels: Record<string, string>
  value: number
  timestamp: number
}

export interface ReadSample {
  name: string
  labels: Record<string, string>
  value: number
  exemplar: ReadExemplar | null
}

export interface ReadFamily {
  name: string
  type: string
  help: string
  samples: ReadSample[]
}

const namePattern = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const labelsPattern = '\\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\["\\\\n])*",?)*\\}'
const numberPattern = '(?:[+-]?(?:Inf|\\d+(?:\\.\\d+)?(?:e[+-]?\\d+)?)|NaN)'
const sampleLine = new RegExp(`^(${namePattern})(${labelsPattern})? (${numberPattern})( # (${labelsPattern}) (${numberPattern}) (\\d+(?:\\.\\d+)?))?$`)
const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,?)/gy

function fail (line: string, why: string): never { throw new Error(`${why}: ${line}`) }

function numberOf (text: string): number {
  return text.endsWith('Inf') ? (text.startsWith('-') ? -Infinity : Infinity) : Number(text)
}

function labelsOf (text: string | undefined, line: string): Record<string, string> {
  const labels: Record<string, string> = {}
  if (text === undefined) return labels
  const inner = text.slice(1, -1)
  label.lastIndex = 0
  let at = 0
  while (at < inner.length) {
    const found = label.exec(inner)
    if (found === null) fail(line, 'labels')
    const [whole, name = '', value = '', comma] = found
    if (name in labels) fail(line, `label ${name} twice`)
    labels[name] = value.replace(/\\([\\"n])/g, (_, char: string) => char === 'n' ? '\n' : char)
    at += whole.length
    if ((comma === ',') !== (at < inner.length)) fail(line, 'comma')
  }
  return labels
}

const suffixes: Record<string, Record<string, string[]>> = {
  text: { counter: [''], gauge: [''], histogram: ['_bucket', '_sum', '_count'] },
  openmetrics: { counter: ['_total'], gauge: [''], histogram: ['_bucket', '_sum', '_count'] }
}

/** @throws Error for each thing that Prometheus text 0.0.4, or OpenMetrics 1.0.0, does not allow, or that its readers would take amiss */
export function readExposition (text: string, format: 'text' | 'openmetrics'): Map<string, ReadFamily> {
  if (!text.endsWith('\n')) throw new Error('the last line has no end')
  const lines = text.slice(0, -1).split('\n')
  if (format === 'openmetrics' && lines.pop() !== '# EOF') throw new Error('# EOF is not last')
  const families = new Map<string, ReadFamily>()
  const seen = new Set<string>()
  let family: ReadFamily | null = null
  for (const line of lines) {
    if (line === '') {
      if (format === 'openmetrics') throw new Error('an empty line')
      continue
    }
    const described = new RegExp(`^# (HELP|TYPE) (${namePattern}) (.*)$`).exec(line)
    if (described !== null) {
      const [, kind, name = '', rest = ''] = described
      if (kind === 'HELP') {
        if (families.has(name)) fail(line, 'family twice')
        if (format === 'openmetrics' && /(^|[^\\])"/.test(rest)) fail(line, 'a quote in HELP')
        families.set(name, family = { name, type: '', help: rest, samples: [] })
      } else if (family?.name !== name || family.type !== '' || family.samples.length > 0) fail(line, 'TYPE at a wrong place')
      else if (!['counter', 'gauge', 'histogram'].includes(rest)) fail(line, 'unknown type')
      else family.type = rest
      if (format === 'openmetrics' && family?.type === 'counter' && name.endsWith('_total')) fail(line, '_total in the name of a family')
      if (format === 'text' && family?.type === 'counter' && !name.endsWith('_total')) fail(line, 'a counter without _total')
      continue
    }
    const read = sampleLine.exec(line)
    if (read === null) fail(line, 'no sample')
    const [, name = '', labels, value = '', exemplar, exemplarLabels, exemplarValue = '', timestamp = ''] = read
    if (family === null) fail(line, 'a sample before its family')
    const suffix = suffixes[format]?.[family.type]?.find((each) => `${(family as ReadFamily).name}${each}` === name)
    if (suffix === undefined) fail(line, `no sample of ${family.name}`)
    const sample: ReadSample = { name, labels: labelsOf(labels, line), value: numberOf(value), exemplar: null }
    const key = `${name}${JSON.stringify(Object.entries(sample.labels).toSorted())}`
    if (seen.has(key)) fail(line, 'a series twice')
    seen.add(key)
    if (exemplar !== undefined) {
      if (format === 'text' || (suffix !== '_bucket' && suffix !== '_total')) fail(line, 'an exemplar here')
      sample.exemplar = { labels: labelsOf(exemplarLabels, line), value: numberOf(exemplarValue), timestamp: Number(timestamp) }
      if (Object.entries(sample.exemplar.labels).reduce((sum, [one, other]) => sum + one.length + other.length, 0) > 128) fail(line, 'an exemplar of more than 128 characters')
    }
    if (family.type === 'counter' && !(sample.value >= 0)) fail(line, 'a negative counter')
    family.samples.push(sample)
  }
  for (const each of families.values()) if (each.type === 'histogram') checkHistogram(each)
  return families
}

/** The buckets of a series stand together, rise, end with +Inf, and agree with the count. */
function checkHistogram ({ name, samples }: ReadFamily): void {
  let key = ''
  let last = { bound: -Infinity, count: 0 }
  for (const { name: own, labels: { le, ...labels }, value, exemplar } of samples) {
    const now = JSON.stringify(labels)
    if (own === `${name}_bucket`) {
      if (le === undefined) throw new Error(`${name}: a bucket without le`)
      if (le !== '+Inf' && !/\./.test(le)) throw new Error(`${name}: le="${le}" is not canonical`)
      const bound = le === '+Inf' ? Infinity : Number(le)
      if (now !== key) {
        if (last.bound !== -Infinity && last.bound !== Infinity) throw new Error(`${name}: a series without +Inf`)
        last = { bound: -Infinity, count: 0 }
      }
      if (!(bound > last.bound) || value < last.count) throw new Error(`${name}: buckets that do not rise`)
      if (exemplar !== null && !(exemplar.value <= bound && exemplar.value > last.bound)) throw new Error(`${name}: an exemplar in a bucket that it is not of`)
      last = { bound, count: value }
      key = now
    } else if (now !== key) throw new Error(`${name}: ${own} away from its buckets`)
    else if (own === `${name}_count` && (last.bound !== Infinity || value !== last.count)) throw new Error(`${name}: the count is not that of +Inf`)
  }
}

/** The values of one name, by their labels written as `a=b,c=d`. */
export function valuesOf (families: ReadonlyMap<string, ReadFamily>, name: string): Record<string, number> {
  const family = families.get(name) ?? families.get(name.replace(/_(?:count|sum|bucket)$/, ''))
  if (family === undefined) throw new Error(`there is no metric ${name}`)
  return Object.fromEntries(family.samples.filter((sample) => sample.name === name)
    .map(({ labels, value }) => [Object.entries(labels).map(([labelName, text]) => `${labelName}=${text}`).join(), value]))
}
