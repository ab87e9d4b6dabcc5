import { deepEqual, equal, match } from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { mergeRepeatedSignals } from '../../bin/signals.ts'
import { environmentProblem, startProblem, wantsAnyPort } from '../../bin/start-options.ts'
import { spawnNode } from '../support/process.ts'
import { rawConnect } from '../support/raw-client.ts'

const cli = join(dirname(fileURLToPath(import.meta.url)), '../../bin/breakwater.js')

test('a signal that comes twice at once is one; a second one after a while is another', () => {
  const target = new EventEmitter() as unknown as NodeJS.Process
  const heard: string[] = []
  let now = 1000
  mergeRepeatedSignals(target, () => now)
  for (const name of ['SIGINT', 'SIGTERM', 'other']) target.on(name, () => { heard.push(name) })
  for (const [name, at] of [['SIGINT', 1000], ['SIGINT', 1003], ['SIGTERM', 1004], ['other', 1004], ['other', 1004], ['SIGINT', 1400]] as const) {
    now = at
    target.emit(name as 'SIGINT', name as 'SIGINT')
  }
  deepEqual(heard, ['SIGINT', 'SIGTERM', 'other', 'other', 'SIGINT'])
})

test('arguments that mean nothing to the proxy are named', () => {
  equal(startProblem(['-p', '1', '--address=::1', '-l', 'warn', '-P']), null)
  match(startProblem(['config/breakwater.yaml']) ?? '', /BREAKWATER_CONFIG=config\/breakwater.yaml/)
  match(startProblem(['--bogus']) ?? '', /--bogus/)
  equal(startProblem(['--prot', '1']), 'unknown option --prot; did you mean --port?')
  equal(startProblem(['-p', 'abc']), '--port must be a number from 0 to 65535, not "abc"')
  match(startProblem(['--prefix', '/x']) ?? '', /--prefix/)
  equal(startProblem(['-l', 'loud']), '--log-level must be one of fatal, error, warn, info, debug, trace, silent, not "loud"')
  equal(startProblem(['-T', 'soon']), '--plugin-timeout must be a number of milliseconds, not "soon"')
  equal(startProblem(['--plugin-timeout=-1']), '--plugin-timeout must be a number of milliseconds, not "-1"')
  equal(startProblem(['-d', '-I', 'NaN']), '--debug-port must be a number from 0 to 65535, not "NaN"')
  equal(startProblem(['-p', '80', '--port=81']), '--port stands twice')
  equal(startProblem(['-g', '0', '-T', '0', '-I', '0', '-p', '0', '-r', './a.js', '-r', './b.js']), null)
  equal(startProblem(['-g', '5s']), '--close-grace-delay must be a number of milliseconds, not "5s"')
})

test('so are variables, unless an argument goes before them; an empty one is none', () => {
  const cases: Array<[string[], NodeJS.ProcessEnv, string | null]> = [
    [[], { FASTIFY_PORT: 'abc', PORT: '80' }, 'FASTIFY_PORT must be a number from 0 to 65535, not "abc"'],
    [[], { PORT: '65536' }, 'PORT must be a number from 0 to 65535, not "65536"'],
    [[], { FASTIFY_PORT: '0', PORT: 'abc' }, null],
    [['-p', '1'], { FASTIFY_PORT: 'abc' }, null],
    [['-s', '/run/x'], { PORT: 'abc' }, null],
    [[], { PORT: '', FASTIFY_LOG_LEVEL: '' }, null],
    [[], { FASTIFY_LOG_LEVEL: 'loud' }, 'FASTIFY_LOG_LEVEL must be one of fatal, error, warn, info, debug, trace, silent, not "loud"'],
    [[], { FASTIFY_CLOSE_GRACE_DELAY: '10s' }, 'FASTIFY_CLOSE_GRACE_DELAY must be a number of milliseconds, not "10s"']
  ]
  for (const [argv, environment, problem] of cases) equal(environmentProblem(argv, environment), problem, JSON.stringify([argv, environment]))
})

test('any free port may be asked for, by an argument and by the variables', () => {
  const cases: ReadonlyArray<[string[], NodeJS.ProcessEnv, boolean]> = [
    [[], {}, false],
    [['-p', '0'], {}, true],
    [['--port=0'], { FASTIFY_PORT: '8080', PORT: '8080' }, true],
    [['-p', '1'], { FASTIFY_PORT: '0', PORT: '0' }, false],
    [[], { FASTIFY_PORT: '0', PORT: '8080' }, true],
    [[], { FASTIFY_PORT: '8080', PORT: '0' }, false],
    [[], { FASTIFY_PORT: '', PORT: '0' }, true],
    [[], { PORT: '' }, false]
  ]
  for (const [argv, environment, wanted] of cases) equal(wantsAnyPort(argv, environment), wanted, JSON.stringify([argv, environment]))
})

test('breakwater start refuses wrong arguments with exit code 2, and helps with 0', async (t) => {
  equal((await spawnNode(t, [cli, 'start', '--bogus']).exit).code, 2)
  equal((await spawnNode(t, [cli, 'start', 'file.yaml']).exit).code, 2)
  equal((await spawnNode(t, [cli, 'start'], { env: { PORT: 'abc', FASTIFY_PORT: undefined } }).exit).code, 2)
  equal((await spawnNode(t, [cli, 'start', '--help']).exit).code, 0)
})

test('Ctrl-C that arrives twice, as under npm, still lets a request finish', async (t) => {
  const upstream = spawnNode(t, [cli, 'upstream', '--port', '0', '--name', 'a'])
  const { port } = await upstream.waitForLine(({ msg }) => msg === 'upstream listening') as { port: number }
  // Not at 3000, for which fastify-cli takes it, and not where PORT says.
  const proxy = spawnNode(t, [cli, 'start', '--port', '0'], { env: { BREAKWATER_UPSTREAMS: `http://127.0.0.1:${port}`, BREAKWATER_ADMIN_PORT: '0', BREAKWATER_CONFIG: undefined, PORT: '1', FASTIFY_PORT: undefined, FASTIFY_ADDRESS: undefined } })
  const line = await proxy.waitForLine(({ msg }) => typeof msg === 'string' && msg.startsWith('Server listening at http://127.0.0.1:'), { timeoutMs: 20000 })
  await proxy.waitForLine(({ msg, healthy }) => msg === 'health_changed' && healthy === true, { timeoutMs: 10000 })
  const client = await rawConnect(Number(/:(\d+)$/.exec(String(line['msg']))?.[1]), { timeoutMs: 15000 })
  t.after(() => { client.destroy() })
  await client.write('GET /slow/1500 HTTP/1.1\r\nHost: a\r\n\r\n')
  // Under way at the upstream: only then the signals.
  const stats = async (): Promise<number> => (await (await fetch(`http://127.0.0.1:${port}/__stats`)).json() as { inFlight: number }).inFlight
  for (let tries = 0; tries < 200 && await stats() === 0; tries++) await new Promise((resolve) => { setTimeout(resolve, 5) })
  proxy.kill('SIGINT')
  proxy.kill('SIGINT')
  equal((await client.readResponse()).status, 200)
  equal((await proxy.exit).code, 0)
})
