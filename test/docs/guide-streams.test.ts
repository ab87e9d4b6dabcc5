/** What docs/guide-streams.md and docs/guide-websockets.md show can be used as it stands. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseText } from '../../config/file.ts'
import { parseConfig } from '../../config/parse.ts'
import { pageOf } from './pages.ts'

for (const name of ['docs/guide-streams.md', 'docs/guide-websockets.md']) {
  test(`${name}: its configuration is one`, () => {
    const shown = pageOf(name).blocks.filter(({ language }) => language === 'yaml')
    assert.ok(shown.length > 0)
    for (const { text } of shown) parseConfig(parseText(text, 'breakwater.yaml'), 'breakwater.yaml')
  })
}
