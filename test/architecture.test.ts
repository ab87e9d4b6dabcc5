import { deepEqual, equal, ok } from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { describe, it } from 'node:test'
import { shipped } from './config/support.ts'

const root = dirname(shipped('tsconfig.json'))
const folders = ['bench', 'bin', 'config', 'docs', 'examples', 'lib', 'plugins', 'routes', 'test']

/** The .ts files of the package, as paths below its root with forward slashes. */
const sources: string[] = [
  ...readdirSync(root).filter((name) => name.endsWith('.ts')),
  ...folders.filter((folder) => existsSync(join(root, folder))).flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => posix.join(folder, name.replaceAll('\\', '/'))).filter((name) => name.endsWith('.ts')))
].toSorted()

interface Import {
  from: string
  /** A file of ours below the root, or the name of a package. */
  to: string
  ours: boolean
  /** `import type` and `export type`, which leave nothing to run. `import { type A }` does leave the import of the module. */
  typeOnly: boolean
  /** The names that are taken as values; `*` for everything, `default` for the default. */
  names: string[]
}

const texts = new Map(sources.map((file) => [file, readFileSync(join(root, file), 'utf8')]))
const statement = /^(?:import|export)\s+(?:(type)\s+)?(?:((?:[\w$]+\s*,?\s*)?(?:\{[^{}]*\}|\*(?:\s+as\s+[\w$]+)?)?)\s*from\s*)?(['"])([^'"\n]+)\3/gm
const dynamic = /\bimport\(\s*(['"])([^'"\n]+)\1\s*\)/g

function namesOf (clause: string): string[] {
  if (clause.startsWith('*')) return ['*']
  const braces = clause.indexOf('{')
  const named = braces === -1 ? [] : clause.slice(braces + 1, clause.lastIndexOf('}')).split(',').map((each) => each.trim()).filter((each) => each !== '' && !each.startsWith('type '))
  const before = braces === -1 ? clause.trim() : clause.slice(0, braces).trim()
  return [...before === '' ? [] : ['default'], ...named.map((each) => each.split(/\s+as\s+/)[0] as string)]
}

function importsOf (file: string): Import[] {
  const text = texts.get(file) as string
  const make = (specifier: string, typeOnly: boolean, names: string[]): Import => {
    const ours = specifier.startsWith('.')
    return { from: file, to: ours ? posix.join(posix.dirname(file), specifier) : specifier, ours, typeOnly, names }
  }
  return [
    ...[...text.matchAll(statement)].map(([, type, clause, , specifier]) => make(specifier as string, type !== undefined, namesOf(clause ?? ''))),
    // `import('x').Y` in a type is told from a call by nothing that a regular expression sees: both count as values.
    ...[...withoutComments(text).matchAll(dynamic)].map(([, , specifier]) => make(specifier as string, false, ['*']))
  ]
}

/** Good enough for sources without comment signs in their strings, but for URLs. */
function withoutComments (text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|[^:'"`\\])\/\/.*$/gm, '$1')
}

const imports = sources.flatMap(importsOf)
const ours = imports.filter((each) => each.ours)
const zoneOf = (file: string): string => file.includes('/') ? file.slice(0, file.indexOf('/')) : 'root'

/** Which folder may take what from which. A file of the root is the composition root or the public face. */
const rules: Record<string, { values: string[], types: string[] }> = {
  root: { values: ['root', 'routes', 'plugins', 'config', 'lib'], types: [] },
  routes: { values: ['routes', 'lib'], types: ['plugins', 'config'] },
  plugins: { values: ['plugins', 'lib'], types: ['config'] },
  lib: { values: ['lib'], types: ['config'] },
  config: { values: ['config'], types: [] },
  bin: { values: ['bin', 'config', 'lib'], types: [] },
  // The load client is that of `breakwater drill`.
  bench: { values: ['bench', 'bin', 'lib'], types: ['config'] },
  docs: { values: ['docs', 'config'], types: [] },
  examples: { values: ['root', 'plugins', 'routes', 'config', 'lib'], types: [] },
  test: { values: ['root', ...folders], types: [] }
}

/** What the rules forbid and there is a reason for: `importer -> imported`. */
const exceptions: Record<string, string> = {
  'app.ts -> bin/demo.ts': 'without any upstream configured, the app starts the embedded demo',
  'docs/openapi.ts -> breakwater.ts': 'the document is of the routes of a whole gateway',
  'docs/openapi.ts -> routes/admin/index.ts': 'the document is of the routes as they are registered',
  'config/check-upstreams.ts -> lib/upstream-url.ts': 'one place takes an upstream\'s URL apart, for the check and for the use',
  'config/diff.ts -> lib/upstream-url.ts': 'an upstream is known by the id that its state is kept by',
  'config/values.ts -> lib/upstream-url.ts': 'a URL is shown without its credentials in one way only',
  'config/check-certificates.ts -> lib/tls-names.ts': 'what the check takes for a name of a certificate is what the use takes for one',
  'config/check-events.ts -> lib/event-types.ts': 'the table that says what an event tells is the list of those that there are',
  'config/check-server.ts -> lib/http/address.ts': 'what the check takes for an address is what the use takes for one',
  'plugins/discovery/file-source.ts -> config/upstream-list.ts': 'a list of upstreams is read and judged as the configuration is',
  'plugins/discovery/named-sources.ts -> config/upstream-list.ts': 'a list of upstreams is judged as the configuration is, whoever gives it',
  'plugins/listener/certificates.ts -> config/regular-file.ts': 'a certificate is read for the use as for the check, where a pipe in its place keeps nobody waiting',
  'plugins/upstream-pools/connector.ts -> config/regular-file.ts': 'a certificate is read for the use as for the check, where a pipe in its place keeps nobody waiting',
  'plugins/upstream-pools.ts -> config/complete.ts': 'completes and checks its own options when registered alone',
  'plugins/event-webhook.ts -> config/complete.ts': 'completes and checks its own options when registered alone',
  'plugins/flight-recorder.ts -> config/complete.ts': 'completes and checks its own options when registered alone',
  'plugins/rate-limits.ts -> config/complete.ts': 'completes and checks its own options when registered alone',
  'plugins/routing.ts -> config/complete.ts': 'completes and checks its own options when registered alone',
  'plugins/load-shedding.ts -> config/complete.ts': 'completes and checks its own options when registered alone',
  'plugins/metrics.ts -> config/complete.ts': 'completes and checks its own options when registered alone',
  'plugins/breaker-registry/options.ts -> config/complete.ts': 'completes and checks its own options when registered alone',
  'routes/admin/routing.ts -> config/redact.ts': 'which values of a route are secrets is decided in one place',
  'routes/admin/schemas.ts -> config/schema.ts': 'the admin routes describe the options by their own schema'
}

/** Files in plugins/ that are no plugins but helpers, which every plugin may use. */
const sharedHelpers: Record<string, string> = {
  'plugins/connection.ts': 'how a response is broken off, and how an early answer lets the client finish',
  'plugins/file-watch.ts': 'tells of a new content of a file, however it came there',
  'plugins/exact-timer.ts': 'a timer that knows when the loop itself stalled',
  'plugins/repeats.ts': 'one line in ten seconds of what strangers can make happen',
  'plugins/raw-problem.ts': 'a problem document for a connection without a request',
  'plugins/refusal.ts': 'how a request is refused, and that it gets one answer',
  'plugins/waiting-responses.ts': 'a close for responses that wait behind another one',
  'plugins/malformed.ts': 'what Node\'s parser refused, judged once for the answer and for the log',
  'plugins/tunnels.ts': 'the tunnel that a connection has become, for who stops it',
  'plugins/http2/negotiated.ts': 'sends over the HTTP version that the other side picks',
  'plugins/http2/sessions.ts': 'sends over HTTP/2',
  'plugins/http2/abort.ts': 'how a stream is reset',
  'plugins/http2/client-request.ts': 'a request over HTTP/2 as HTTP/1 would have brought it',
  'plugins/http2/client-response.ts': 'a response over HTTP/2 as HTTP/1 has them',
  'plugins/http2/client-sessions.ts': 'time limits and floods of clients\' sessions',
  'plugins/http2/cut.ts': 'how a client\'s session ends, whatever state it is in',
  'plugins/http2/is-http2.ts': 'which requests came on a stream of HTTP/2',
  'plugins/http2/end-later.ts': 'sessions end when what has come is read',
  'plugins/http2/errors.ts': 'what ends an exchange over HTTP/2, as it is classified',
  'plugins/upgrading-message.ts': 'the message class of a server that carries WebSockets'
}

/** Functions that a plugin's file exports beside the plugin: they keep state on the connection, not in a module. */
const sharedFunctions: Record<string, string[]> = {
  'plugins/edge.ts': ['isClosing', 'latestReplyOn', 'requestIdSource']
}

/** A plugin that another one registers on a server of its own: there is no instance on which the two could meet. */
const registeredElsewhere = new Set(['plugins/admin-listener/server.ts -> plugins/edge.ts'])

/** Tests that are passed over, but never in .ci/run, where a tool is missing. */
const mayBeSkipped: Record<string, string> = {
  'test/bin/cli/completion.test.ts': 'shells that complete what somebody types',
  'test/conformance/quick.test.ts': 'suites that drive other programs',
  'test/deploy/prometheus.test.ts': 'promtool judges the alerts',
  'test/deploy/systemd.test.ts': 'systemd-analyze judges the unit',
  'test/docs/guide-tls.test.ts': 'haproxy runs the guide\'s configuration',
  'test/docs/guide-nginx.test.ts': 'nginx runs the guide\'s configuration',
  'test/web/support.ts': 'chromium opens the admin page',
  'test/e2e/shedding/descriptors.test.ts': 'prlimit takes a running process its descriptors'
}

const keyOf = ({ from, to }: Import): string => `${from} -> ${to}`
/** The plugin that a file belongs to: `plugins/forwarder/attempt.ts` and `plugins/forwarder.ts` are the forwarder's. */
const pluginOf = (file: string): string => file.split('/')[1]!.replace(/\.ts$/, '')

describe('the sources', () => {
  it('are read, with their imports', () => {
    ok(sources.length > 80)
    ok(ours.length > 200)
    deepEqual(importsOf('lib/breaker/types.ts').map(({ to, typeOnly }) => [to, typeOnly]), [['lib/failure.ts', true]])
    deepEqual(importsOf('lib/http/problem.ts').map(({ to, names }) => [to, names]), [['lib/failure.ts', ['failureOf']], ['lib/random.ts', ['Random']], ['lib/http/forwarded.ts', ['proxyName']]])
    // Tests have code in their strings.
    for (const [file, text] of texts) {
      if (zoneOf(file) === 'test') continue
      const count = (pattern: RegExp): number => withoutComments(text).match(pattern)?.length ?? 0
      equal(importsOf(file).length, count(/^import '|^[^'"`]* from '[^']+'$|\bimport\('[^']+'\)/gm), `${file} has an import that this test does not understand`)
    }
  })

  it('import files that are there, by their names', () => {
    deepEqual(ours.filter(({ to }) => !texts.has(to)).map(keyOf), [])
  })
})

describe('the dependency rule', () => {
  for (const [zone, { values, types }] of Object.entries(rules)) {
    it(`${zone} takes values from ${values.join(', ')}${types.length === 0 ? '' : `, types also from ${types.join(', ')}`}`, () => {
      const allowed = ({ to, typeOnly }: Import): boolean => values.includes(zoneOf(to)) || (typeOnly && types.includes(zoneOf(to)))
      const broken = ours.filter((each) => zoneOf(each.from) === zone && !allowed(each)).map(keyOf)
      deepEqual(broken.filter((key) => !(key in exceptions)), [])
    })
  }

  it('has no exception that nobody needs', () => {
    const there = new Set(ours.filter(({ typeOnly }) => !typeOnly).map(keyOf))
    deepEqual(Object.keys(exceptions).filter((key) => !there.has(key)), [])
    deepEqual(Object.keys(sharedHelpers).filter((helper) => !ours.some(({ from, to }) => to === helper && from !== helper)), [])
  })

  it('lets no plugin take another plugin\'s values', () => {
    const broken = ours.filter(({ from, to, typeOnly, names }) =>
      zoneOf(from) === 'plugins' && zoneOf(to) === 'plugins' && !typeOnly && pluginOf(from) !== pluginOf(to) && !(to in sharedHelpers) &&
      !(to in sharedFunctions && names.every((name) => sharedFunctions[to]!.includes(name))))
    deepEqual(broken.map(keyOf).filter((key) => !registeredElsewhere.has(key)), [])
  })

  it('lets a route take a plugin\'s types only', () => {
    deepEqual(ours.filter(({ from, to, typeOnly }) => zoneOf(from) === 'routes' && zoneOf(to) === 'plugins' && !typeOnly).map(keyOf), [])
  })

  it('lets nothing but tests import tests', () => {
    deepEqual(ours.filter(({ from, to }) => zoneOf(to) === 'test' && zoneOf(from) !== 'test').map(keyOf), [])
  })

  it('has no cycles', () => {
    const graph = new Map<string, Import[]>()
    for (const each of ours) if (!each.typeOnly) graph.set(each.from, [...graph.get(each.from) ?? [], each])
    const done = new Set<string>()
    const visit = (file: string, path: string[]): void => {
      if (path.includes(file)) throw new Error(`a cycle: ${[...path.slice(path.indexOf(file)), file].join(' -> ')}`)
      if (done.has(file)) return
      for (const { to } of graph.get(file) ?? []) visit(to, [...path, file])
      done.add(file)
    }
    for (const file of sources) visit(file, [])
  })
})

describe('lib is pure', () => {
  const lib = sources.filter((file) => zoneOf(file) === 'lib')
  /** Third-party code without I/O, clock and randomness. */
  const pure = ['find-my-way', 'ipaddr.js']

  /** What one file may take besides, and why. */
  const pureUse: Record<string, string> = {
    'lib/balance/sticky.ts -> node:crypto': 'an HMAC is a function of its input alone'
  }

  it('takes only pure packages', () => {
    const impure = imports.filter(({ from, to, ours: own }) => zoneOf(from) === 'lib' && !own && !pure.includes(to)).map(keyOf)
    deepEqual(impure.toSorted(), Object.keys(pureUse).toSorted())
  })

  /** What would make a policy depend on more than (state, event, now), with the one file that may have it. */
  const impure: [string, RegExp, string | null][] = [
    ['the wall clock', /\bDate\b/, null],
    ['a clock', /\bperformance\b/, 'lib/clock.ts'],
    ['randomness', /\bMath\.random\b|\bcrypto\b/, 'lib/random.ts'],
    ['timers', /\b(?:setTimeout|setInterval|setImmediate|queueMicrotask|nextTick)\b/, null],
    ['the process', /(?<!\.)\bprocess\b|\bglobalThis\b|\bconsole\b/, null],
    ['the network', /\bfetch\b|\bWebSocket\b/, null],
    ['other modules at run time', /\bimport\(|\brequire\(|\bimport\.meta\b/, null]
  ]
  for (const [what, pattern, only] of impure) {
    it(`has ${what} nowhere${only === null ? '' : ` but in ${only}`}`, () => {
      const found = lib.filter((file) => file !== only && pattern.test(withoutStrings(withoutComments(texts.get(file) as string))))
      deepEqual(found, [])
    })
  }

  function withoutStrings (text: string): string {
    return text.replaceAll(/'(?:[^'\\\n]|\\.)*'/g, '\'\'')
  }
})

describe('every plugin', () => {
  const plugins = sources.filter((file) => zoneOf(file) === 'plugins' && /^export default\b/m.test(texts.get(file) as string))
  const names = plugins.map((file) => `breakwater-${pluginOf(file)}`)

  it('is there', () => { ok(plugins.length >= 8) })

  for (const file of plugins) {
    it(`${file} is wrapped and named after its file`, () => {
      const text = texts.get(file) as string
      const [, wrapped] = text.split(/^export default fp(?:<\w+>)?\(/m)
      ok(wrapped !== undefined, 'export default fp(...)')
      equal(/\bname: '([^']+)'/.exec(wrapped)?.[1], `breakwater-${pluginOf(file)}`)
      for (const [, name] of wrapped.matchAll(/'(breakwater-[^']*)'/g)) ok(names.includes(name as string), `depends on ${name}, which is no plugin of ours`)
    })
  }

  it('is known to the linter\'s rule', () => {
    const rule = readFileSync(join(root, '.oxlintrc.json'), 'utf8')
    deepEqual(plugins.map(pluginOf).filter((name) => !new RegExp(`[:|]${name}[|)]`).test(rule)), [])
  })

  it('beside the plugins there are only shared helpers', () => {
    deepEqual(sources.filter((file) => /^plugins\/[^/]+\.ts$/.test(file) && !plugins.includes(file) && !(file in sharedHelpers)), [])
  })
})

describe('every file', () => {
  it('is short: sources below 400 lines, tests below 500', () => {
    deepEqual(sources.filter((file) => (texts.get(file) as string).split('\n').length > (zoneOf(file) === 'test' ? 500 : 400)), [])
  })

  it('leaves nothing to be done later', () => {
    // Spelt so that this file has none itself.
    const marks = /\b(?:TO(?:DO)|FIX(?:ME)|X(?:XX))\b/
    deepEqual(sources.filter((file) => marks.test(texts.get(file) as string)), [])
  })

  it('leaves no test alone, and skips only what wants a tool that a machine may lack', () => {
    const found = (marks: RegExp): string[] => sources.filter((file) => zoneOf(file) === 'test' && marks.test(texts.get(file) as string))
    deepEqual(found(/\b(?:it|test|describe)\.(?:only|to(?:do))\b|\b(?:only|to(?:do)): true\b/), [])
    // Spelt so that this file has none itself.
    deepEqual(found(/\b(?:it|test|describe|t|context)\.s(?:kip)\(|\bs(?:kip):/), ['test/support/tools.test.ts', 'test/support/tools.ts'])
    deepEqual(found(/^(?!export).*[^'\w]s(?:kipWithout)\(['a-z]/m).toSorted(), [...Object.keys(mayBeSkipped), 'test/support/tools.test.ts'].toSorted())
  })
})
