/** What the client sends and what every peer must hand back. */
export interface Scenario {
  title: string
  method: 'GET' | 'POST'
  path: string
  /** Bytes of the request's body. */
  requestBytes: number
  /** Bytes of the answer's body. */
  responseBytes: number
  /** Where it is not the usual number: few connections are many bytes, and what is under way at the end of a round counts nowhere. */
  connections?: number
}

/** So long is a body of which the first and the last bytes do not count. */
const streamBytes = 16 * 1024 * 1024

/** Answers of these sizes are at these paths of the upstream; POST is answered like GET. */
export const scenarios = {
  get: { title: 'GET, 100-byte JSON answer', method: 'GET', path: '/', requestBytes: 0, responseBytes: 100 },
  deep: { title: 'GET of a deep path, which one of many routes matches, 100-byte JSON answer', method: 'GET', path: '/service-617/orders/42', requestBytes: 0, responseBytes: 100 },
  post: { title: 'POST of 1 kB JSON, 100-byte JSON answer', method: 'POST', path: '/', requestBytes: 1000, responseBytes: 100 },
  large: { title: 'GET, 64 KiB answer', method: 'GET', path: '/large', requestBytes: 0, responseBytes: 65536 },
  download: { title: 'GET, 16 MiB answer', method: 'GET', path: '/download', requestBytes: 0, responseBytes: streamBytes, connections: 4 },
  upload: { title: 'POST of 16 MiB, 100-byte answer', method: 'POST', path: '/upload', requestBytes: streamBytes, responseBytes: 100, connections: 4 }
} as const satisfies Record<string, Scenario>

export type ScenarioName = keyof typeof scenarios

/** The bytes that one request moves, where they and not the request are what costs; 0: they are not. */
export const movedBytes = ({ requestBytes, responseBytes }: Scenario): number => Math.max(requestBytes, responseBytes) >= streamBytes ? Math.max(requestBytes, responseBytes) : 0

/** A JSON document of exactly `bytes` bytes (12 or more); empty for 0. */
export const jsonOf = (bytes: number): string => bytes === 0 ? '' : `{"pad":"${'x'.repeat(bytes - 10)}"}`
