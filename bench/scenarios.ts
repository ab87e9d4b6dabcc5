/** What the client sends and what every peer must hand back. */
export interface Scenario {
  title: string
  method: 'GET' | 'POST'
  path: string
  /** Bytes of the request's body. */
  requestBytes: number
  /** Bytes of the answer's body. */
  responseBytes: number
}

/** Answers of these sizes are at these paths of the upstream; POST is answered like GET. */
export const scenarios = {
  get: { title: 'GET, 100-byte JSON answer', method: 'GET', path: '/', requestBytes: 0, responseBytes: 100 },
  deep: { title: 'GET of a deep path, which one of many routes matches, 100-byte JSON answer', method: 'GET', path: '/service-617/orders/42', requestBytes: 0, responseBytes: 100 },
  post: { title: 'POST of 1 kB JSON, 100-byte JSON answer', method: 'POST', path: '/', requestBytes: 1000, responseBytes: 100 },
  large: { title: 'GET, 64 KiB answer', method: 'GET', path: '/large', requestBytes: 0, responseBytes: 65536 }
} as const satisfies Record<string, Scenario>

export type ScenarioName = keyof typeof scenarios

/** A JSON document of exactly `bytes` bytes (12 or more); empty for 0. */
export const jsonOf = (bytes: number): string => bytes === 0 ? '' : `{"pad":"${'x'.repeat(bytes - 10)}"}`
