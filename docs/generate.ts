/** Writes the pages that are made from the code: `npm run docs`. Runs from dist/docs/, two levels below the package's root. */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { optionsPage } from './options-table.ts'

const page = fileURLToPath(new URL('../../docs/options.md', import.meta.url))
writeFileSync(page, optionsPage())
process.stdout.write(`wrote ${page}\n`)
