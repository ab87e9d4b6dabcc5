/** What the schema is made of: kinds of options, each with its bounds. Times are milliseconds. */
import { Type, type TSchema } from 'typebox'

export const maxTimer = 2147483647
export const poolName = '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'

export const tokenPattern = "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"

export const object = <T extends Record<string, TSchema>>(properties: T, options: { description?: string } = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options })

/** A section that may be left out: its own defaults fill it. */
export const section = <T extends Record<string, TSchema>>(description: string, properties: T) =>
  Type.Object(properties, { additionalProperties: false, default: {}, description })

export const ms = (value: number, description: string) => Type.Integer({ minimum: 1, maximum: maxTimer, default: value, description })
export const msOrNone = (value: number, description: string) => Type.Integer({ minimum: 0, maximum: maxTimer, default: value, description })
export const count = (value: number, minimum: number, description: string) => Type.Integer({ minimum, maximum: maxTimer, default: value, description })
export const flag = (value: boolean, description: string) => Type.Boolean({ default: value, description })
export const ratio = (value: number, description: string) => Type.Number({ minimum: 0, maximum: 1, default: value, description })
export const share = (value: number, description: string) => Type.Number({ exclusiveMinimum: 0, maximum: 1, default: value, description })
export const bytesOrNone = (description: string, value = 0) => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: value, description })

export const oneOf = <T extends string>(values: T[], value: NoInfer<T>, description: string) =>
  Type.Enum<T[]>(values, { default: value, description })
