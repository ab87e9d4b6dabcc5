import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parseConfig } from '../../config/parse.ts'
import { shipped, withShop } from '../config/support.ts'
import { skipWithout } from '../support/tools.ts'

const text = readFileSync(shipped('deploy/breakwater.service'), 'utf8')
const settings = text.split('\n').filter((line) => /^[A-Z]\w+=/.test(line)).map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)] as const)
const valuesOf = (name: string): string[] => settings.filter(([key]) => key === name).map(([, value]) => value)

const work = mkdtempSync(join(tmpdir(), 'breakwater-unit-'))
after(() => { rmSync(work, { recursive: true, force: true }) })

/** The unit with the Node that runs this test, as Node may be elsewhere on this machine. */
const unit = join(work, 'breakwater.service')
writeFileSync(unit, text.replace('ExecStart=/usr/bin/node ', `ExecStart=${process.execPath} `))

/** What `systemd-analyze` says, or null where there is none, or one too old to know this command. */
function analyze (args: string[]): { status: number | null, output: string } | null {
  const { error, status, stdout, stderr } = spawnSync('systemd-analyze', ['--no-pager', ...args, unit], { encoding: 'utf8', timeout: 30_000 })
  if (error !== undefined || /unrecognized option|[Uu]nknown (?:option|command|operation)/.test(stderr)) return null
  return { status, output: stdout + stderr }
}

test('deploy/breakwater.service: Node gets the signal itself, and has longer than our own drain takes', () => {
  assert.match(valuesOf('ExecStart').join(), /^\/usr\/bin\/node \S+\/dist\/bin\/breakwater\.js start /)
  assert.deepEqual(valuesOf('KillSignal'), ['SIGTERM'])
  const { delayMs, graceMs } = parseConfig(withShop(), 'defaults').server.shutdown
  assert.ok(Number(valuesOf('TimeoutStopSec')[0]) * 1000 > delayMs + graceMs + 2000)
})

test('deploy/breakwater.service: a failure starts it again, a wrong configuration does not, and a missing one is never the demo', () => {
  assert.deepEqual([valuesOf('Restart'), valuesOf('RestartPreventExitStatus')], [['on-failure'], ['2']])
  assert.ok(valuesOf('Environment').some((value) => value.startsWith('BREAKWATER_CONFIG=/')))
  assert.equal(valuesOf('EnvironmentFile').length, 1)
})

test('deploy/breakwater.service: no privileges, no writable files, and memory that V8 may execute', () => {
  const wanted: Record<string, string> = {
    DynamicUser: 'yes',
    NoNewPrivileges: 'yes',
    CapabilityBoundingSet: '',
    ProtectSystem: 'strict',
    ProtectHome: 'yes',
    PrivateTmp: 'yes',
    PrivateDevices: 'yes',
    ProtectKernelTunables: 'yes',
    ProtectKernelModules: 'yes',
    ProtectKernelLogs: 'yes',
    ProtectControlGroups: 'yes',
    RestrictAddressFamilies: 'AF_UNIX AF_INET AF_INET6',
    RestrictNamespaces: 'yes',
    LockPersonality: 'yes',
    UMask: '0077',
    SystemCallArchitectures: 'native'
  }
  for (const [name, value] of Object.entries(wanted)) assert.deepEqual(valuesOf(name), [value], name)
  assert.equal(valuesOf('SystemCallFilter')[0], '@system-service')
  assert.deepEqual(valuesOf('MemoryDenyWriteExecute'), [])
  assert.match(text, /^# Not MemoryDenyWriteExecute=: V8 /m)
  assert.ok(Number(valuesOf('LimitNOFILE')[0]) >= 65536)
})

test('deploy/breakwater.service: systemd-analyze verify has nothing to say', (t) => {
  const said = analyze(['verify'])
  if (said === null) return skipWithout('systemd-analyze', t)
  assert.deepEqual(said, { status: 0, output: '' })
})

test('deploy/breakwater.service: systemd-analyze security rates its exposure as the README says', (t) => {
  const said = analyze(['security', '--offline=true'])
  const level = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(said?.output ?? '')?.[1] ?? NaN)
  if (Number.isNaN(level)) return skipWithout('systemd-analyze that can do this offline', t)
  assert.ok(level <= 2, `${level}`)
})
