/** The configuration is read again: first it is judged, and what would change is shown. */
import { post } from './api.js'
import { ask, reasonField } from './dialog.js'
import { h } from './dom.js'
import { plural } from './format.js'

const named = ({ pool, upstream }) => `${pool} / ${upstream}`
const withOptions = (name, options) => options.length === 0 ? name : `${name}: ${options.join(', ')}`

/** The diff as headings with their lines. */
function changesOf (diff) {
  const { pools, upstreams, breakers, routes, shedding = [], other = [], needsRestart = [], impact } = diff
  return [
    ['Pools added', pools.added],
    ['Pools removed', pools.removed],
    ['Pools changed', pools.changed.map(({ pool, options }) => withOptions(pool, options))],
    ['Upstreams added', upstreams.added.map(named)],
    ['Upstreams removed', upstreams.removed.map(named)],
    ['Upstreams changed', upstreams.changed.map((each) => withOptions(named(each), each.options) + (each.reconnects ? ' (new connections)' : ''))],
    ['Breakers with other options, in', breakers.changed],
    ['Routes added', routes.added],
    ['Routes removed', routes.removed],
    ['Routes changed', routes.changed.map(({ route, options }) => withOptions(route, options))],
    ['Routes', routes.reordered ? ['in another order'] : []],
    ['Shedding', shedding],
    ['Other options', other],
    ['Needs a restart', needsRestart],
    ['Exchanges that end as they began', impact.exchanges > 0 ? impact.upstreams.map((each) => `${named(each)}: ${each.inFlight}`) : []]
  ].filter(([, lines]) => lines.length > 0)
}

const list = (groups) => h('dl', { class: 'diff' }, groups.map(([name, lines]) => [h('dt', {}, name), lines.map((line) => h('dd', {}, line))]))

const errorsOf = (error) => Array.isArray(error.body?.errors) ? error.body.errors.map(({ path, message }) => path === '' ? message : `${path}: ${message}`) : [error.message]

async function judge () {
  try {
    return { diff: (await post('config/validate')).diff, errors: null }
  } catch (error) {
    return { diff: null, errors: errorsOf(error) }
  }
}

/** @param done called when it was taken */
export async function askReload (done) {
  const { diff, errors } = await judge()
  const groups = errors === null ? changesOf(diff) : [['It cannot be taken', errors]]
  const blocked = errors !== null || diff.needsRestart.length > 0
  const what = errors !== null ? 'What the configuration says now is refused. The one in force stays.'
    : diff.needsRestart.length > 0 ? 'Some of it takes a restart: it is refused as a whole while this process runs.'
      : diff.same ? 'The configuration says what is in force already. Taking it again changes nothing.'
        : `This would change, at once; ${plural(diff.upstreams.kept, 'upstream')} and what is known of them stay.`
  const dialog = ask({
    title: 'Reload the configuration',
    what: [what],
    body: groups.length === 0 ? null : list(groups),
    fields: blocked ? [] : [reasonField()],
    confirm: 'Reload',
    run: async (reason) => {
      try {
        await post('config/reload', { reason })
      } catch (error) {
        throw new Error(errorsOf(error).join('; '), { cause: error })
      }
      done()
      return 'The configuration is in force.'
    }
  })
  dialog.allow(!blocked)
}
