import { ConfigError } from './error.ts'
import { parseJson } from './json.ts'
import { maxFileBytes, readRegularFile } from './regular-file.ts'
import { parseYaml } from './yaml.ts'

const failures: Record<string, string> = {
  ENOENT: 'no such file',
  ENOTDIR: 'no such file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a directory',
  EINVAL: 'it is not a regular file',
  ENXIO: 'it is not a regular file',
  EFBIG: `it has more than ${maxFileBytes} bytes`,
  ELOOP: 'its symlinks lead in a circle',
  EMFILE: 'too many open files',
  ENAMETOOLONG: 'the name is too long'
}

/** Why a file could not be read, in words. */
export const fileFailure = (error: unknown): string => {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
  return failures[code] ?? code
}

/**
 * Reads YAML 1.2 (core schema: `off` and `no` are texts) or JSON, which is a part of it.
 * @throws ConfigError with the line and column of each syntax error, up to a hundred
 */
export const parseText = (text: string, source: string): unknown => {
  const value = parseJson(text)
  return value === undefined ? parseYaml(text, source) : value
}

/**
 * Reads a configuration file, which must be a regular one.
 * @throws ConfigError if it cannot be read, is no UTF-8 text, or has a syntax error
 */
export const readConfigFile = (file: string): unknown => {
  let bytes: Buffer
  try {
    bytes = readRegularFile(file)
  } catch (error) {
    throw new ConfigError(file, [{ path: '', message: `cannot be read: ${fileFailure(error)}` }])
  }
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new ConfigError(file, [{ path: '', message: 'must be UTF-8 text' }])
  }
  return parseText(text, file)
}
