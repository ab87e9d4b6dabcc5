import type { Problem } from '../../config/error.ts'

/** A configuration that cannot be taken, with everything that is wrong with it. */
export class Rejection extends Error {
  readonly errors: readonly Problem[]

  constructor (errors: readonly Problem[]) {
    super(errors.map(({ path, message }) => path === '' ? message : `${path}: ${message}`).join('; '))
    this.name = 'Rejection'
    this.errors = Object.freeze(errors.map((each) => Object.freeze({ ...each })))
  }
}

/** What any error on the way to a new configuration says is wrong: a ConfigError has a list of it. */
export function rejectionOf (error: unknown): Rejection {
  if (error instanceof Rejection) return error
  const { errors, message } = error as { errors?: unknown, message?: unknown }
  return new Rejection(Array.isArray(errors) ? errors as Problem[] : [{ path: '', message: String(message ?? error) }])
}
