/** Writes the pages that are made from the code: `npm run docs`. Runs from dist/docs/, two levels below the package's root. */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { openApiPage } from './openapi.ts'
import { optionsPage } from './options-table.ts'

for (const [name, page] of [['options.md', optionsPage()], ['openapi.json', await openApiPage()]] as const) {
  const file = fileURLToPath(new URL(`../../docs/${name}`, import.meta.url))
  writeFileSync(file, page)
  process.stdout.write(`wrote ${file}\n`)
}
