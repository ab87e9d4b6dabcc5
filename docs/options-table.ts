import { describe, configSchema, type JsonSchema } from '../config/describe.ts'

/** One option: a row of docs/options.md. */
export interface OptionRow {
  /** Like `pools.<name>.upstreams[].url`. */
  path: string
  type: string
  /** As in YAML; null where there is none. */
  default: string | null
  required: boolean
  description: string
}

/** One mapping of the configuration: a table of docs/options.md. */
export interface OptionSection {
  path: string
  description: string
  rows: OptionRow[]
}

const join = (parent: string, key: string) => parent === '' ? key : `${parent}.${key}`

/** The mappings below an option, with what stands for their name or index in the path. */
const inner = (schema: JsonSchema, path: string): [JsonSchema, string][] => {
  if (schema.properties !== undefined) return [[schema, path]]
  if (schema.items?.properties !== undefined) return [[schema.items, `${path}[]`]]
  return Object.values(schema.patternProperties ?? {}).map(value => [value, `${path}.<name>`])
}

const typeOf = (schema: JsonSchema): string => {
  const named = Object.values(schema.patternProperties ?? {})
  if (named.some(({ properties }) => properties !== undefined)) return 'mappings by name, at least 1'
  if (schema.items?.properties !== undefined) return schema.minItems === undefined ? 'a list of mappings' : `a list of mappings, at least ${schema.minItems}`
  return describe(schema)
}

const toRow = (key: string, option: JsonSchema, parent: JsonSchema, parentPath: string): OptionRow => ({
  path: join(parentPath, key),
  type: typeOf(option),
  default: option.default === undefined ? null : JSON.stringify(option.default),
  required: option.default === undefined && parent.required?.includes(key) === true,
  description: option.description ?? ''
})

const sectionsOf = (schema: JsonSchema, path: string, description: string): OptionSection[] => {
  const options = Object.entries(schema.properties ?? {})
  const rows = options.filter(([, option]) => option.properties === undefined).map(([key, option]) => toRow(key, option, schema, path))
  const below = options.flatMap(([key, option]) => inner(option, join(path, key))
    .flatMap(([section, sectionPath]) => sectionsOf(section, sectionPath, section.description ?? option.description ?? '')))
  return [{ path, description, rows }, ...below].filter(section => section.rows.length > 0)
}

/** Every option once, in the order of config/schema.ts. */
export const optionSections = (): OptionSection[] => sectionsOf(configSchema, '', 'The top level: besides these, the sections below.')

const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('<', '\\<')

const toLine = (row: OptionRow): string => {
  const fallback = row.default === null ? (row.required ? 'required' : 'none') : `\`${row.default}\``
  return `| \`${row.path.replaceAll('|', '\\|')}\` | ${cell(row.type)} | ${fallback} | ${cell(row.description)} |`
}

const toTable = ({ path, description, rows }: OptionSection): string => [
  `## ${path === '' ? 'Top level' : `\`${path}\``}`,
  '',
  cell(description),
  '',
  '| Option | Must be | Default | What it does |',
  '| --- | --- | --- | --- |',
  ...rows.map(toLine)
].join('\n')

/** The text of docs/options.md. */
export const optionsPage = (): string => [
  '# Options',
  '<!-- Made from config/schema.ts by `npm run docs`; edits here are lost. -->',
  'All options of a configuration. How it is found and written: [configuration.md](configuration.md).\nTimes are in milliseconds where the name ends in `Ms`. An option that is not listed here is an error.',
  ...optionSections().map(toTable)
].join('\n\n') + '\n'
