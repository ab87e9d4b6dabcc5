import { checkOrder } from './check-order.ts'
import type { Report } from './checks.ts'
import { objectOf } from './values.ts'

export const checkBreaker = (breaker: Record<string, unknown>, path: string, report: Report): void => {
  checkOrder(breaker, path, 'openMs', 'maxOpenMs', report)
}

export const checkEjection = (ejection: Record<string, unknown>, path: string, report: Report): void => {
  checkOrder(ejection, path, 'baseMs', 'maxMs', report)
  const { mode, consecutiveFailures, window } = ejection
  if ((mode === 'enforce' || mode === 'observe') && consecutiveFailures === 0 && objectOf(window)['failureRatio'] === 0) {
    report(path, `must have consecutiveFailures or window.failureRatio above 0 with mode: ${mode}, got 0 for both`)
  }
}

export const checkPanic = ({ threshold, whenNone }: Record<string, unknown>, path: string, report: Report): void => {
  if (threshold === 0 && whenNone === true) report(`${path}.whenNone`, 'must be false with threshold: 0, which is never; the least panic is a threshold above 0, like 0.01')
}
