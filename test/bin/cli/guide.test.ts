/** docs/guide-command-line.md: what it shows is what the commands print. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { commands } from '../../../bin/cli/commands.ts'
import { helpOf } from '../../../bin/cli/help.ts'
import { until } from '../../support/wait.ts'
import { guide, proxy, run } from './support.ts'

/** Each `$ command` of the console blocks with the lines below it. */
function shown (): Array<[command: string, output: string]> {
  return [...guide().matchAll(/^```console\n([^]*?)^```$/gm)].flatMap(([, block = '']) => block.split(/^\$ /m).slice(1).map((part): [string, string] => {
    const [command = '', ...output] = part.split('\n')
    return [command, output.join('\n').trimEnd()]
  }))
}

/** Splits a line as a shell does, as far as the guide needs it. */
const words = (line: string): string[] => [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')

/** What differs from run to run: times, and how columns are laid out around them. */
const steady = (text: string): string => text
  .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
  .replaceAll(/^\d+ TIME/gm, 'N TIME')
  .replaceAll(/(?<![\w-])\d+(?:\.\d+)?(?:ms|s|m|h)(?: \d+[smh])?(?![\w-])/g, 'SPAN')
  .replaceAll(/after [\d.]+ ms/g, 'after N ms')
  .replaceAll(/[\da-f]{8}-[\da-f-]{27}/g, 'ID')
  .replaceAll(/ {2,}/g, '  ')

test('its examples print what it shows, in their order, against a proxy with two upstreams', async (t) => {
  const { app, admin, ids, upstreams } = await proxy(t)
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  /** Some requests of which one upstream's fail, and nothing else is to be seen afterwards. */
  const someFail = async (): Promise<void> => {
    upstreams[0]?.set({ failRatio: 1 })
    for (let i = 1; i <= 6; i++) await (await fetch(`${url}/orders/${Math.ceil(i / 2)}`)).text()
    await until(() => app.recorder.view().records >= 3)
    for (const id of ids) app.breakers.find('shop', id)?.reset('afterwards')
  }
  const examples = shown().filter(([command]) => !command.endsWith('--help'))
  ok(examples.length >= 8)
  for (const [command, output] of examples) {
    const [program, ...argv] = words(command)
    equal(program, 'breakwater')
    const real = argv.map((word) => word.replace('127.0.0.1:9001', ids[0] as string).replace('127.0.0.1:9002', ids[1] as string))
    if (argv[0] === 'requests') await someFail()
    const { out, errors } = await run(real, { env: { BREAKWATER_ADMIN_URL: admin } })
    const told = [...errors, ...out].join('\n').replaceAll(ids[0] as string, '127.0.0.1:9001').replaceAll(ids[1] as string, '127.0.0.1:9002').replaceAll(admin, 'http://127.0.0.1:9090')
    equal(steady(told), steady(output), command)
  }
})

test('it names every command, its table of exit codes is that of the help, and its help texts are the real ones', () => {
  const table = [...guide().matchAll(/^\| `breakwater ([\w-]+)/gm)].map(([, name]) => name)
  deepEqual(table, commands.map(({ name }) => name))
  for (const [command, output] of shown().filter(([each]) => each.endsWith('--help'))) {
    const name = words(command)[1]
    const known = commands.find((each) => each.name === name)
    ok(known !== undefined, command)
    equal(output, helpOf(known).trimEnd(), command)
  }
})
