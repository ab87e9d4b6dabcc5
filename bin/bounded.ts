/** A signal that aborts by itself; the time begins again with `renew`, and `end` leaves nothing of it behind. */
export interface BoundedSignal {
  readonly signal: AbortSignal
  renew: () => void
  end: () => void
}

/**
 * A signal that aborts with `stopped`, and after `ms` with a TimeoutError. With AbortSignal.any, `stopped` keeps something for each
 * signal that is made of it for as long as it lives, which is as long as the process where it stands for Ctrl-C.
 * @param ms 1 to 2147483647
 */
export function boundedSignal (ms: number, stopped?: AbortSignal): BoundedSignal {
  const controller = new AbortController()
  const stop = (): void => controller.abort(stopped?.reason)
  const timer = setTimeout(() => controller.abort(new DOMException('the time is over', 'TimeoutError')), ms)
  if (stopped?.aborted === true) stop()
  stopped?.addEventListener('abort', stop, { once: true })
  return {
    signal: controller.signal,
    renew: () => { timer.refresh() },
    end: () => {
      clearTimeout(timer)
      stopped?.removeEventListener('abort', stop)
    }
  }
}
