import type { Problem } from '../../config/error.ts'
import { listOf, objectOf } from '../../config/values.ts'
import { oneLine } from '../../lib/one-line.ts'
import { AdminFailure, adminOf, ask, type Admin } from '../admin-client.ts'
import { inFlightOf, isDiff, isProblem } from '../ask-admin.ts'
import { diffLines } from '../diff-text.ts'
import { adminOptions, exitCodes, UsageError, type Command, type Terminal } from './command.ts'

const complaint = ({ path, message }: Problem): string => oneLine(`  - ${path === '' ? '' : `${path}: `}${message}`)

/** What would change, as lines; null where it cannot be taken, which has been told then. */
async function told (admin: Admin, path: string, body: object | undefined, terminal: Terminal): Promise<string[] | null> {
  const { status, content } = await ask(admin, path, { method: 'POST', ...body !== undefined && { body }, waitMs: 30_000, signal: terminal.stopped }, [422])
  const said = objectOf(content)
  const errors = listOf(said['errors']).filter(isProblem)
  if (status === 422 && errors.length > 0) {
    terminal.complain('the configuration is refused:', ...errors.map(complaint))
    return null
  }
  const diff = said['diff']
  if (!isDiff(diff)) throw new AdminFailure(3, `${admin.base} answers what no admin route of this version does`)
  // The values are not known here: the new configuration is in a file that may be on another machine.
  return diffLines(diff, null, null, inFlightOf(diff)).map(oneLine)
}

/** `breakwater reload`. */
export const reloadCommand: Command = {
  name: 'reload',
  summary: 'show what the configuration file would change, and have it taken',
  operands: [],
  options: {
    yes: { short: 'y', text: 'do not ask' },
    reason: { value: 'TEXT', text: 'why, for the journal' },
    ...adminOptions
  },
  notes: `Where nobody can be asked, --yes is needed.\n${exitCodes}`,
  async run (given, terminal) {
    const admin = adminOf(given, terminal.env)
    const reason = given.text('reason')
    if (reason !== undefined && (reason === '' || reason.length > 256)) throw new UsageError('--reason must have 1 to 256 characters')
    const shown = await told(admin, 'config/validate', undefined, terminal)
    if (shown === null) return 1
    terminal.out(...shown)
    if (shown.some((line) => line.startsWith('! '))) {
      terminal.complain('it needs a restart: nothing is taken')
      return 1
    }
    if (!given.flag('yes')) {
      const answer = terminal.ask('take it? [y/N] ')
      if (answer === null) throw new UsageError('nobody can be asked: give --yes')
      if (!/^y(?:es)?$/i.test((await answer).trim())) {
        terminal.complain('nothing is taken')
        return 1
      }
    }
    const taken = await told(admin, 'config/reload', reason === undefined ? {} : { reason }, terminal)
    if (taken === null) return 1
    if (taken.join('\n') !== shown.join('\n')) terminal.out('the file has changed meanwhile; this was taken:', ...taken)
    const { content } = await ask(admin, 'config', { signal: terminal.stopped })
    terminal.out(`taken: version ${String(objectOf(objectOf(content)['status'])['version'])}`)
    return 0
  }
}
