/** Everything that the scripted upstream can be told. `set()` and `POST /__control` change the faults, not the first six. */
export interface UpstreamSettings {
  port: number
  host: string
  name: string
  seed: number
  healthPath: string
  keepAliveMs: number

  failEvery: number
  failRatio: number
  failStatus: number
  delayMs: number
  jitterMs: number
  hang: boolean
  hangHealth: boolean
  refuseHealth: boolean
  truncateEvery: number
  resetEvery: number
  slowBodyMs: number
  bodyBytes: number | null
  status: number
  headers: Array<[string, string]>
  close: boolean
}

type FixedKey = 'port' | 'host' | 'name' | 'seed' | 'healthPath' | 'keepAliveMs'
export type UpstreamOptions = Partial<UpstreamSettings>
export type UpstreamFaults = Omit<UpstreamSettings, FixedKey>
export type UpstreamChanges = Partial<UpstreamFaults>

/** Thrown for options or changes that cannot be taken; `problems` names every one of them. */
export class UpstreamOptionError extends Error {
  readonly problems: readonly string[]

  constructor (problems: readonly string[]) {
    super(problems.join('; '))
    this.name = 'UpstreamOptionError'
    this.problems = problems
  }
}

interface Field {
  flag: string
  kind: 'integer' | 'ratio' | 'boolean' | 'text' | 'headers'
  min?: number
  max?: number
  live: boolean
  help: string
}

const maxMs = 2 ** 31 - 1
const every = { kind: 'integer', min: 0, max: Number.MAX_SAFE_INTEGER, live: true } as const
const ms = { kind: 'integer', min: 0, max: maxMs, live: true } as const
const statusCode = { kind: 'integer', min: 200, max: 999, live: true } as const
const onOff = { kind: 'boolean', live: true } as const

/** The one table behind the flags, the help, the checks and the live control. */
export const upstreamFields: Record<keyof UpstreamSettings, Field> = {
  port: { flag: 'port', kind: 'integer', min: 0, max: 65535, live: false, help: 'port to listen on (default 0: any free one)' },
  host: { flag: 'host', kind: 'text', live: false, help: 'address to listen on (default 127.0.0.1)' },
  name: { flag: 'name', kind: 'text', live: false, help: 'name told in every answer (default upstream)' },
  seed: { flag: 'seed', kind: 'integer', min: 0, max: 2 ** 32 - 1, live: false, help: 'seed of --fail-ratio and --jitter-ms (default 1)' },
  healthPath: { flag: 'health-path', kind: 'text', live: false, help: 'path of the health check (default /healthz)' },
  keepAliveMs: { flag: 'keep-alive-ms', kind: 'integer', min: 0, max: maxMs, live: false, help: 'closes a connection idle this long (default 5000; 0: never)' },

  failEvery: { flag: 'fail-every', ...every, help: 'every Nth request fails (0: none)' },
  failRatio: { flag: 'fail-ratio', kind: 'ratio', min: 0, max: 1, live: true, help: 'this share of the requests fails, drawn from the seed' },
  failStatus: { flag: 'fail-status', ...statusCode, help: 'status of a failed request (default 500)' },
  delayMs: { flag: 'delay-ms', ...ms, help: 'waits before each answer' },
  jitterMs: { flag: 'jitter-ms', ...ms, help: 'waits up to this much longer, drawn from the seed' },
  hang: { flag: 'hang', ...onOff, help: 'accepts requests and never answers them; health still answers' },
  hangHealth: { flag: 'hang-health', ...onOff, help: 'never answers the health check' },
  refuseHealth: { flag: 'refuse-health', ...onOff, help: 'answers the health check with 503' },
  truncateEvery: { flag: 'truncate-every', ...every, help: 'every Nth body is cut midway (0: none)' },
  resetEvery: { flag: 'reset-every', ...every, help: 'every Nth request is reset before the head (0: none)' },
  slowBodyMs: { flag: 'slow-body-ms', ...ms, help: 'drips the body: waits this long before each piece' },
  bodyBytes: { flag: 'body-bytes', kind: 'integer', min: 0, max: Number.MAX_SAFE_INTEGER, live: true, help: 'answers with this many bytes in place of the JSON' },
  status: { flag: 'status', ...statusCode, help: 'status of an ordinary answer (default 200)' },
  headers: { flag: 'header', kind: 'headers', live: true, help: 'adds a response field, as \'name: value\'; repeatable' },
  close: { flag: 'close', ...onOff, help: 'sends Connection: close every time' }
}

export const upstreamDefaults: Readonly<UpstreamSettings> = Object.freeze({
  port: 0,
  host: '127.0.0.1',
  name: 'upstream',
  seed: 1,
  healthPath: '/healthz',
  keepAliveMs: 5000,
  failEvery: 0,
  failRatio: 0,
  failStatus: 500,
  delayMs: 0,
  jitterMs: 0,
  hang: false,
  hangHealth: false,
  refuseHealth: false,
  truncateEvery: 0,
  resetEvery: 0,
  slowBodyMs: 0,
  bodyBytes: null,
  status: 200,
  headers: [],
  close: false
})

const fieldName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/

function isHeaderList (value: unknown): value is Array<[string, string]> {
  return Array.isArray(value) && value.every((pair: unknown) => Array.isArray(pair) && pair.length === 2 &&
    typeof pair[0] === 'string' && fieldName.test(pair[0]) && typeof pair[1] === 'string' && fieldValue.test(pair[1]))
}

function problemOf (key: keyof UpstreamSettings, field: Field, value: unknown): string | undefined {
  switch (field.kind) {
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'must be true or false'
    case 'text':
      if (typeof value !== 'string' || value === '') return 'must be a text that is not empty'
      return key === 'healthPath' && !value.startsWith('/') ? 'must start with /' : undefined
    case 'headers':
      return isHeaderList(value) ? undefined : 'must be a list of [name, value] with valid field names and values'
    case 'integer':
    case 'ratio': {
      if (key === 'bodyBytes' && value === null) return undefined
      const { min = 0, max = 1 } = field
      const whole = field.kind === 'ratio' || Number.isInteger(value)
      const inside = typeof value === 'number' && whole && value >= min && value <= max
      return inside ? undefined : `must be ${field.kind === 'ratio' ? 'a number' : 'a whole number'} from ${min} to ${max}`
    }
  }
}

/**
 * Checks options or live changes and returns a copy; keys whose value is undefined are left out.
 * @param label how a problem names its option: the key itself, or on a command line its flag
 * @throws UpstreamOptionError with all problems at once: unknown keys, wrong types, numbers out of bounds
 */
export function checkUpstreamOptions (input: unknown, which: 'all', label?: (key: keyof UpstreamSettings) => string): UpstreamOptions
export function checkUpstreamOptions (input: unknown, which: 'live'): UpstreamChanges
export function checkUpstreamOptions (input: unknown, which: 'all' | 'live', label = (key: keyof UpstreamSettings): string => key): UpstreamOptions {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) throw new UpstreamOptionError(['must be an object'])
  const problems: string[] = []
  const taken: Array<[string, unknown]> = []
  for (const [name, value] of Object.entries(input)) {
    if (value === undefined) continue
    if (!Object.hasOwn(upstreamFields, name)) {
      problems.push(`${name}: there is no such option`)
      continue
    }
    const key = name as keyof UpstreamSettings
    const field = upstreamFields[key]
    const problem = which === 'live' && !field.live ? 'cannot be changed while it runs' : problemOf(key, field, value)
    if (problem !== undefined) problems.push(`${label(key)}: ${problem}`)
    taken.push([key, value])
  }
  if (problems.length > 0) throw new UpstreamOptionError(problems)
  return Object.fromEntries(taken) as UpstreamOptions
}
