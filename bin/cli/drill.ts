import { isLoopbackAuthority } from '../../lib/http/loopback.ts'
import { oneLine } from '../../lib/one-line.ts'
import { adminOf } from '../admin-client.ts'
import { drills } from '../drill/drills.ts'
import { maxFaultMs, play } from '../drill/play.ts'
import { adminOptions, UsageError, type Command, type Given } from './command.ts'
import { durationOf, durationText } from './duration.ts'

const seconds = { least: 1000, most: maxFaultMs }

function numberOf (given: Given, name: string, otherwise: number, least: number, most: number, whole: boolean): number {
  const text = given.text(name)
  if (text === undefined) return otherwise
  const value = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : NaN
  if (!(value >= least && value <= most) || (whole && !Number.isInteger(value))) throw new UsageError(`--${name} must be a ${whole ? 'whole ' : ''}number from ${least} to ${most}, not "${text}"`)
  return value
}

function publicUrl (text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || url.protocol !== 'http:' || url.username !== '' || url.password !== '' || url.hash !== '') throw new UsageError('--url must be like http://127.0.0.1:8080/path')
  return url
}

/** `breakwater drill NAME`. */
export const drillCommand: Command = {
  name: 'drill',
  summary: 'make the upstreams of a trial fail under load, and tell whether the proxy does what it promises',
  operands: [{ name: 'NAME', choices: drills.map(({ name }) => name) }],
  options: {
    'pool': { value: 'POOL', text: 'whose upstreams; left out where there is one pool' },
    'url': { value: 'URL', text: 'where requests are sent, at the public listener (http://127.0.0.1:8080/)' },
    'start': { text: 'begin scripted upstreams at addresses of the pool where nothing listens' },
    'for': { value: 'TIME', text: 'how long the fault lasts, 1s to 60s (3s); hangs lasts until a request has waited for its whole time' },
    'rate': { value: 'N', text: 'requests a second, 10 to 500 (60)' },
    'ratio': { value: 'RATIO', text: 'share of failures in the drill errors, 0.1 to 1 (0.8)' },
    'seed': { value: 'N', text: 'of the moments of the requests, and of who fails (1)' },
    'yes': { short: 'y', text: 'also where the admin routes are not on this machine\'s loopback' },
    ...adminOptions
  },
  notes: `${drills.map(({ name, title }) => `  ${name.padEnd(15)}${title}`).join('\n')}

Only scripted upstreams on loopback are touched: those of the demo, those of \`breakwater upstream\`, and with --start its own. A pool with
any other is refused. It ends by itself, and upstreams are as they were, also after Ctrl-C; should the drill be killed, they
come back by themselves 15 s later.

Exit codes: 0 pass; 1 fail, or refused; 2 wrong arguments; 3 the proxy cannot be reached, or does not allow it; 130 Ctrl-C.`,
  async run (given, terminal) {
    const drill = drills.find(({ name }) => name === given.operands[0])
    if (drill === undefined) throw new UsageError('no such drill')
    const admin = adminOf(given, terminal.env)
    if (!isLoopbackAuthority(new URL(admin.base).host) && !given.flag('yes')) throw new UsageError(`${admin.base} is not on this machine's loopback: --yes, if you are sure`)
    const faultMs = durationOf(given.text('for') ?? '3s', '--for')
    if (faultMs < seconds.least || faultMs > seconds.most) throw new UsageError(`--for must be from ${durationText(seconds.least)} to ${durationText(seconds.most)}`)
    const passed = await play(drill, {
      admin,
      pool: given.text('pool'),
      url: publicUrl(given.text('url') ?? 'http://127.0.0.1:8080/'),
      faultMs,
      rate: numberOf(given, 'rate', 60, 10, 500, true),
      ratio: numberOf(given, 'ratio', 0.8, 0.1, 1, false),
      seed: numberOf(given, 'seed', 1, 0, 2 ** 31 - 1, true),
      start: given.flag('start'),
      stopped: terminal.stopped,
      say: (line) => terminal.out(oneLine(line))
    })
    return passed ? 0 : 1
  }
}
