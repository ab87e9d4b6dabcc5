import { writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { freePorts, Workshop, type Child } from './children.ts'
import { loadClient } from './load.ts'
import { measureRound, untilReady, type Round } from './measure.ts'
import { parseOptions, usage, type BenchOptions } from './options.ts'
import type { Peer } from './peers/peer.ts'
import { peers, targets } from './peers/table.ts'
import { peakKib } from './proc.ts'
import { judge, printBytes, printRows, printTargets, summarize } from './report.ts'
import { movedBytes, scenarios } from './scenarios.ts'
import { rotate } from './stats.ts'
import { startUpstream } from './upstream.ts'

interface Running {
  peer: Peer
  child: Child
  port: number
  version: string
  rounds: Round[]
}

/** The peers whose CPU is held against the targets. */
const judged = ['breakwater', 'breakwater-large']

const say = (text: string): void => { process.stdout.write(`${text}\n`) }

function chosen (only: readonly string[]): Peer[] {
  const unknown = only.filter(name => !peers.some(peer => peer.name === name))
  if (unknown.length > 0) throw new RangeError(`--only knows ${peers.map(peer => peer.name).join(', ')}, not ${unknown.join(', ')}`)
  return peers.filter(({ name, asked }) => only.length === 0 ? asked !== true : only.includes(name))
}

/** Starts every chosen peer that can run here; each that cannot is named with the reason. */
async function startPeers (workshop: Workshop, options: BenchOptions, upstreams: readonly number[]): Promise<Running[]> {
  const { path, responseBytes } = scenarios[options.scenario]
  const running: Running[] = []
  for (const peer of chosen(options.only)) {
    const missing = peer.missing()
    if (missing !== null) {
      say(`skipped ${peer.name}: ${missing}`)
      continue
    }
    try {
      const [port] = await freePorts(1) as [number]
      const site = { port, upstreams: upstreams.slice(0, peer.upstreams ?? options.upstreams) }
      const child = workshop.start(peer.name, await peer.prepare({ ...site, folder: workshop.place(peer.name), signal: workshop.signal }))
      await untilReady(child, port, path, responseBytes)
      running.push({ peer, child, port, version: peer.version(), rounds: [] })
    } catch (error) {
      workshop.signal.throwIfAborted()
      say(`skipped ${peer.name}: ${(error as Error).message}`)
    }
  }
  return running
}

async function bench (workshop: Workshop, options: BenchOptions): Promise<void> {
  const scenario = scenarios[options.scenario]
  const upstreams = await freePorts(Math.max(options.upstreams, ...chosen(options.only).map(peer => peer.upstreams ?? 0)))
  const upstream = startUpstream(workshop, upstreams)
  await Promise.all(upstreams.map(port => untilReady(upstream.child, port, scenario.path, scenario.responseBytes)))
  const load = loadClient(workshop, scenario, options.connections)
  const machine = { cpu: cpus()[0]?.model.trim() ?? 'unknown', cores: cpus().length, node: process.versions.node, os: `${process.platform} ${process.arch}` }
  say(`machine: ${machine.cpu}, ${machine.cores} cores, node ${machine.node}, ${machine.os}`)
  const load1 = loadavg()[0] ?? 0
  if (load1 > 0.5) say(`note: the load average is ${load1.toFixed(1)} before the run: other work here will widen the spread`)
  say(`${scenario.title}; upstream ${upstream.title} on ${options.upstreams} ports, client ${load.title}, ${options.connections} keep-alive connections, ${options.rounds} rounds of ${options.seconds} s`)

  const running = await startPeers(workshop, options, upstreams)
  if (running.length === 0) throw new Error('no peer can run here')
  for (const { child, port } of running) await measureRound(child, port, load, options.warmup)
  for (let round = 0; round < options.rounds; round++) {
    for (const { child, port, rounds } of rotate(running, round)) rounds.push(await measureRound(child, port, load, options.seconds))
    workshop.signal.throwIfAborted()
    say(`round ${round + 1}/${options.rounds}: ${running.map(({ peer, rounds }) => `${peer.name} ${rounds.at(-1)?.cpuMicros.toFixed(1)}`).join(' · ')}`)
  }

  const measured = running.map(({ peer, child, version, rounds }) => ({ name: peer.name, features: peer.features, version, rounds, peakKib: peakKib(child.pid) }))
  const rows = summarize(measured, 'breakwater')
  const verdicts = judged.flatMap(name => judge(summarize(measured, name), name, targets))
  say(`\n${printRows(rows)}`)
  const bytes = movedBytes(scenario)
  if (bytes > 0) say(`\n${printBytes(rows, bytes)}\n\n${printTargets(verdicts.filter(({ ours, peer }) => ours === 'breakwater' && peer === 'node-undici'))}`)
  // The targets are for the small GET; that beside bare node:http and undici is for bytes, too.
  if (scenario.responseBytes === scenarios.get.responseBytes && scenario.method === 'GET') say(`\n${printTargets(verdicts)}`)
  if (options.json !== null) {
    writeFileSync(options.json, `${JSON.stringify({ machine, upstream: upstream.title, client: load.title, options, peers: measured, rows, targets: verdicts }, null, 2)}\n`)
  }
  if (rows.some(row => row.faults.length > 0)) process.exitCode = 1
}

let options: BenchOptions | null
try {
  options = parseOptions(process.argv.slice(2))
  if (options !== null) chosen(options.only)
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n\n${usage}\n`)
  process.exit(2)
}
if (options === null) {
  say(usage)
} else if (process.platform !== 'linux') {
  process.stderr.write('the benchmark reads /proc: it runs on Linux only\n')
  process.exitCode = 2
} else {
  const workshop = new Workshop()
  // The last resort: whatever way this process ends, nothing that it started stays behind.
  process.once('exit', () => workshop.kill())
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => { void workshop.close().then(() => process.exit(130)) })
  }
  try {
    await bench(workshop, options)
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
    process.exitCode = 1
  } finally {
    await workshop.close()
  }
}
