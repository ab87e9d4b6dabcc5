import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { shipped } from '../config/support.ts'

/** The package's root. */
export const root = dirname(shipped('tsconfig.json'))

export interface Block {
  language: string
  /** What stands behind the language, such as the example that is shown; '' for nothing. */
  info: string
  text: string
}

export interface Page {
  /** Path below the root, with forward slashes. */
  name: string
  text: string
  blocks: Block[]
  /** The text without its blocks. */
  prose: string
}

const fence = /^(`{3,})([^\n]*)\n([^]*?)^\1$\n?/gm

function read (name: string): Page {
  const text = readFileSync(join(root, name), 'utf8')
  const blocks = [...text.matchAll(fence)].map(([, , info, body]) => {
    const [language = '', ...rest] = (info ?? '').trim().split(' ')
    return { language, info: rest.join(' '), text: body ?? '' }
  })
  return { name, text, blocks, prose: text.replace(fence, '') }
}

const below = (folder: string): string[] => readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  .map((name) => posix.join(folder, name.replaceAll('\\', '/')))

/** Every page of the documentation. */
export const pages: readonly Page[] = [
  ...readdirSync(root),
  ...below('docs'),
  ...below('deploy')
].filter((name) => name.endsWith('.md')).toSorted().map(read)

export function pageOf (name: string): Page {
  const page = pages.find((each) => each.name === name)
  if (page === undefined) throw new Error(`there is no ${name}`)
  return page
}

/** What stands between single backticks. */
export const quoted = ({ prose }: Page): string[] => [...prose.matchAll(/(?<!`)`([^`\n]+)`(?!`)/g)].map(([, text]) => text as string)

/** The names of the files below some folders of the root that end like this. */
export const filesBelow = (folders: readonly string[], suffix: string): string[] => folders.flatMap(below).filter((name) => name.endsWith(suffix))
