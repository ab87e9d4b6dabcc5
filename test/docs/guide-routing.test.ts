/** What docs/guide-routing.md says of its examples is what happens. */
import { equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { parseText } from '../../config/file.ts'
import { parseConfig } from '../../config/parse.ts'
import { CompiledRoute } from '../../lib/route/compiled.ts'
import { RouteTable } from '../../lib/route/table.ts'
import { pageOf } from './pages.ts'

const { blocks, prose } = pageOf('docs/guide-routing.md')
const configs = blocks.filter(({ language }) => language === 'yaml').map(({ info, text }) => ({ info, config: parseConfig(parseText(text, 'the guide'), 'the guide') }))

/** The cells of a table's rows, by its first heading. */
function rowsOf (heading: string): string[][] {
  const [, table = ''] = new RegExp(`^\\| ${heading} \\|.*\\n\\| ---.*\\n((?:\\|.*\\n)+)`, 'm').exec(prose) ?? []
  return table.trim().split('\n').map((row) => row.slice(2, -2).split(' | '))
}

const code = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, each]) => each as string)

test('its configurations are valid', () => { ok(configs.length >= 3) })

test('each request of its first table is taken by the route that it names', () => {
  const found = configs.find(({ info }) => info === 'routes')
  const table = new RouteTable(found?.config.routes ?? [])
  const rows = rowsOf('Request')
  ok(rows.length > 10)
  for (const [request = '', takes = ''] of rows) {
    const [start = '', second = ''] = code(request)
    const [method = '', target = ''] = start.split(' ')
    const [path = '', search] = target.split('?')
    const [name = '', value = ''] = request.includes(' with ') ? second.split(': ') : []
    const headers = name === '' ? {} : { [name]: value }
    const match = table.match(method, request.includes(' at ') ? second : '', path, search === undefined ? '' : `?${search}`, headers)
    equal(`routes[${match?.route.index}]`, code(takes)[0], request)
  }
  equal(new Set(rows.map(([, takes = '']) => takes)).size, found?.config.routes.length, 'each route takes one of them')
})

test('each path of its second table is forwarded as it says', () => {
  const rows = rowsOf('Route')
  ok(rows.length > 5)
  for (const [route = '', asked = '', forwarded = ''] of rows) {
    const [path = '', ...options] = code(route)
    const compiled = new CompiledRoute({ path, pool: 'shop', ...Object.fromEntries(options.map((option) => option.split(': '))) })
    equal(compiled.path(code(asked)[0] as string, ''), code(forwarded)[0], route)
  }
})
