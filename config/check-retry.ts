import { checkOrder } from './check-order.ts'
import type { FieldNames } from './check-route-fields.ts'
import { repeated } from './check-server.ts'
import type { Report } from './checks.ts'
import { isOwnField } from './own-fields.ts'
import { keyPath } from './path.ts'
import { given, listOf, objectOf } from './values.ts'

export const checkRetry = (retry: Record<string, unknown>, path: string, report: Report): void => {
  const backoffPath = keyPath(path, 'backoff')
  repeated(listOf(retry['statuses']), keyPath(path, 'statuses'), report)
  checkOrder(objectOf(retry['backoff']), backoffPath, 'baseMs', 'maxMs', report)
  const { percentile } = objectOf(retry['hedge'])
  if (typeof percentile === 'number' && percentile > 0 && percentile < 0.5) {
    report(keyPath(keyPath(path, 'hedge'), 'percentile'), `must be 0 or at least 0.5, or most requests would be sent twice, got ${percentile}`)
  }
}

export const checkDeadlineHeader = (name: unknown, path: string, { requestId, certificate }: FieldNames, report: Report): void => {
  if (typeof name !== 'string') return
  if ([requestId, certificate].includes(name.toLowerCase()) || isOwnField(name)) report(path, `must be a header of its own, got ${given(name, '')}, which has a meaning already`)
}
