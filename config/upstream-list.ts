/** Lists of upstreams that are no part of a configuration, judged like those that are. */
import { Type, type Static } from 'typebox'
import { ConfigError, gather, type Problem } from './error.ts'
import { parseText } from './file.ts'
import { deepFreeze } from './freeze.ts'
import { parseConfig } from './parse.ts'
import { resolve } from './resolve.ts'
import { UpstreamOptions } from './schema.ts'
import { checkStructure, rootOf } from './structure.ts'

/** Far more than a pool has, and no more than are judged in a moment. */
const maxListed = 1000

/** The pool that stands around the list while it is judged: one that may have any weights, and none above 0. */
const around = (upstreams: unknown[]) => ({ pools: { list: { balancer: 'weighted', discovery: { source: 'list' }, upstreams } } })

/** The problems with paths that begin at the list. */
const within = (list: string, problems: readonly Problem[]): Problem[] => problems.map(({ path, message }) =>
  ({ path: path.startsWith(list) ? path.slice(list.length) : path, message: message.replaceAll(`${list}[`, '[') }))

/**
 * Reads a file that is a list of upstreams, written like the `upstreams` of a pool: YAML or JSON, judged by the same rules, with the
 * same defaults. Texts are taken as they are, without variables. An empty file is an empty list;
 * 1000 upstreams are the most.
 * @param where what to call the source in errors
 * @throws ConfigError with everything that is wrong, by paths like `[0].url`
 */
export const parseUpstreamList = (content: Uint8Array, where: string): readonly UpstreamOptions[] => {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(content)
  } catch {
    throw new ConfigError(where, [{ path: '', message: 'must be UTF-8 text' }])
  }
  const upstreams = parseText(text, where) ?? []
  if (!Array.isArray(upstreams)) throw new ConfigError(where, [{ path: '', message: 'must be a list of upstreams, like "- url: http://10.0.0.1:80"' }])
  if (upstreams.length > maxListed) throw new ConfigError(where, [{ path: '', message: `must be a list of at most ${maxListed} upstreams, got ${upstreams.length}` }])
  try {
    return parseConfig(around(upstreams), where).pools['list']?.upstreams ?? []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new ConfigError(where, within('pools.list.upstreams', error.errors))
  }
}

const Member = Type.Object({ ...UpstreamOptions.properties, address: Type.Optional(Type.String({ description: 'The IP address to connect to.' })) }, { additionalProperties: false })
const Members = Type.Object({ list: Type.Array(Member) }, { additionalProperties: false })

/**
 * A copy of a list of upstreams that code gives, with the defaults of a pool's upstreams and its types and bounds, frozen. URLs and
 * addresses are not judged.
 * @throws ConfigError with everything that is wrong, by paths like `[0].weight`
 */
export const completeMembers = (members: unknown, where: string): Static<typeof Members>['list'] => {
  const root = rootOf(Members)
  const { value, problems } = resolve({ list: members }, root, null)
  const errors = gather(problems, problems.some(({ path }) => path === '') ? [] : checkStructure(value, root))
  if (errors.length > 0) throw new ConfigError(where, within('list', errors))
  return deepFreeze(value as Static<typeof Members>).list
}
