import type { Report } from './checks.ts'
import { keyPath } from './path.ts'
import { given, listOf, objectOf } from './values.ts'

export const checkHealthPath = (path: unknown, at: string, report: Report): void => {
  if (typeof path !== 'string' || /^[\x21\x22\x24-\x7e]*$/.test(path)) return
  report(at, `must be of visible ASCII characters without "#", others percent-encoded, got ${given(path, '')}`)
}

export const checkHealth = (health: Record<string, unknown>, path: string, report: Report): void => {
  const [low, high] = listOf(health['statuses'])
  if (typeof low === 'number' && typeof high === 'number' && low > high) {
    report(keyPath(path, 'statuses'), `must be a range from low to high, got [${low}, ${high}]`)
  }
  checkHealthPath(health['path'], keyPath(path, 'path'), report)
  if (health['json'] === undefined) return
  const jsonPath = keyPath(path, 'json')
  if (health['type'] === 'tcp') report(jsonPath, 'is only for type: http, which gets an answer')
  const { pointer } = objectOf(health['json'])
  if (typeof pointer === 'string' && /~(?![01])/.test(pointer)) report(keyPath(jsonPath, 'pointer'), `must be a JSON pointer, in which "~" is written "~0", got ${given(pointer, '')}`)
}
