import { deepEqual, ok } from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { stringify } from 'yaml'
import { ConfigError, formatConfigError } from '../../config/error.ts'
import { parseText } from '../../config/file.ts'
import { parseConfig } from '../../config/parse.ts'
import { junk, validConfig } from './valid-config.ts'

/** Everything that was written is in the result as it was written. */
const assertKept = (written: unknown, result: unknown): void => {
  if (typeof written !== 'object' || written === null) return deepEqual(result, written)
  for (const [key, value] of Object.entries(written)) assertKept(value, (result as Record<string, unknown>)[key])
}

test('a valid configuration keeps what was written, and is a valid configuration again', () => {
  fc.assert(fc.property(validConfig, input => {
    const config = parseConfig(input, 'test')
    assertKept(input, config)
    deepEqual(parseConfig(config, 'test'), config)
  }), { seed: 11, numRuns: 150 })
})

test('as YAML and as JSON it is the same', () => {
  fc.assert(fc.property(validConfig, input => {
    const config = parseConfig(input, 'test')
    deepEqual(parseConfig(parseText(stringify(input), 'yaml'), 'yaml'), config)
    deepEqual(parseConfig(parseText(JSON.stringify(input), 'json'), 'json'), config)
  }), { seed: 12, numRuns: 60 })
})

test('junk is refused with a ConfigError and nothing else', () => {
  fc.assert(fc.property(junk, fc.boolean(), (input, expand) => {
    try {
      parseConfig(input, 'junk', expand ? { env: { X: 'x' } } : {})
    } catch (error) {
      ok(error instanceof ConfigError && error.errors.length > 0, String(error))
      ok(formatConfigError(error).includes('junk'))
    }
  }), { seed: 13, numRuns: 1500 })
})

test('junk text is refused with a ConfigError and nothing else', () => {
  const piece = fc.constantFrom('a', ': ', ':', '- ', '\n', '  ', '\t', '[', ']', '{', '}', ',', '"', "'", '|', '>', '&a ', '*a', '!', '!!str ', '#', '? ', '---\n', '...', '%', '@', '`', '\\', '\u0000', '<<', 'é', '1', '~')
  fc.assert(fc.property(fc.array(piece, { maxLength: 25 }), pieces => {
    try {
      parseConfig(parseText(pieces.join(''), 'junk'), 'junk')
    } catch (error) {
      ok(error instanceof ConfigError && error.errors.length > 0, String(error))
    }
  }), { seed: 14, numRuns: 2000 })
})
