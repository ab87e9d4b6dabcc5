import type { Target } from '../../lib/http/target.ts'
import { passedRequestTrailers } from '../../lib/http/trailers.ts'
import { CompiledRoute } from '../../lib/route/compiled.ts'
import { forwardedPath } from '../../lib/route/rewrite.ts'
import type { ReplacedFields } from '../observation.ts'
import type { Upstream, UpstreamPool } from '../upstream-pools.ts'
import { removeField, removeFields } from './incoming.ts'
import type { ClientBody } from './request-body.ts'
import type { AnyRoute } from './route.ts'

/** The parts of a request that are the same for every upstream. */
export interface OutgoingParts {
  readonly method: string
  readonly target: Target
  readonly route: AnyRoute
  /** name, value, name, value, ... of all fields but the framing, which is undici's. */
  readonly fields: string[]
  /** Where the value of the Host stands among them. */
  readonly hostAt: number
  /** The Host that the client asked for; may be ''. */
  readonly host: string
  /** It asks for a WebSocket. */
  readonly upgrade: boolean
  /** The client takes trailers. */
  readonly takesTrailers: boolean
  /** It is gRPC, which HTTP/1 cannot carry. */
  readonly grpc: boolean
  /** Whether a field may stand behind the client's body; null: nothing may. */
  readonly mayTrail: ((name: string) => boolean) | null
}

/**
 * What an exchange sends to whichever upstream of a pool: each attempt gets the path behind the upstream's own base path, and the
 * Host that the pool wants.
 */
export class Outgoing {
  readonly body: ClientBody | Buffer | null
  readonly #parts: OutgoingParts
  readonly #preserve: boolean
  readonly #deadlineHeader: string | null
  readonly #endsAt: number
  #taken = false

  /** @param endsAt monotonic time at which all has to be done, told to the upstream where the pool says so; Infinity: there is none */
  constructor (parts: OutgoingParts, { options }: UpstreamPool, body: ClientBody | Buffer | null, endsAt: number) {
    this.body = body
    this.#parts = parts
    this.#preserve = options.hostHeader === 'preserve' && parts.host !== ''
    this.#endsAt = endsAt
    this.#deadlineHeader = options.deadlineHeader ?? null
  }

  get method (): string { return this.#parts.method }
  get upgrade (): boolean { return this.#parts.upgrade }
  get takesTrailers (): boolean { return this.#parts.takesTrailers }
  get grpc (): boolean { return this.#parts.grpc }
  get route (): AnyRoute { return this.#parts.route }

  pathFor ({ url: { basePath } }: Upstream): string {
    const { route, target: { path, search } } = this.#parts
    return (route instanceof CompiledRoute ? route.path(path, basePath) : forwardedPath(path, route.stripPrefix, route.prefix, basePath)) + search
  }

  fieldsFor ({ host }: Upstream): string[] {
    // Those of the attempt before may still be on their way out.
    const fields = this.#taken ? this.#parts.fields.slice() : this.#parts.fields
    this.#taken = true
    fields[this.#parts.hostAt] = this.#preserve ? this.#parts.host : host
    return fields
  }

  /** What reads the trailers of the client's body once that has ended; null: it cannot have any. */
  get requestTrailers (): (() => string[]) | null {
    const { body } = this
    const { mayTrail } = this.#parts
    return mayTrail === null || body === null || Buffer.isBuffer(body) ? null : () => passedRequestTrailers(body.rawTrailers, mayTrail)
  }

  /**
   * The fields with what is left of the time, in the moment of sending.
   * @param replaced what is sent in the place of the client's; null: nothing is
   */
  stamped (fields: string[], replaced: ReplacedFields | null): string[] {
    const timed = this.#deadlineHeader !== null && this.#endsAt !== Infinity
    if (!timed && replaced === null) return fields
    const stamped = [...fields]
    if (replaced !== null) {
      removeFields(stamped, replaced.names)
      stamped.push(...replaced.fields)
    }
    if (timed) stamped.push(this.#deadlineHeader as string, String(Math.max(0, Math.floor(this.#endsAt - performance.now()))))
    return stamped
  }

  /** The same request as a copy for another pool, with a field that says so. */
  copyFor (pool: UpstreamPool, body: Buffer | null, endsAt: number): Outgoing {
    const { fields, host, hostAt } = this.#parts
    const before = fields.slice(0, hostAt - 1)
    const after = fields.slice(hostAt + 1)
    const { deadlineHeader } = pool.options
    if (deadlineHeader !== undefined) for (const part of [before, after]) removeField(part, deadlineHeader)
    return new Outgoing({ ...this.#parts, fields: ['host', host, ...before, ...after, mirrorField, '1'], hostAt: 1 }, pool, body, endsAt)
  }
}

/** Says that a request is a copy, whose answer nobody will see. */
export const mirrorField = 'x-breakwater-mirror'
