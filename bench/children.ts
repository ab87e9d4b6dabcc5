import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { chmodSync, closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A program to start. */
export interface Command {
  program: string
  args: string[]
  env?: Record<string, string>
  /** The file that what it prints goes to. By default /dev/null, as its access log is meant to cost what it costs but fill no disk. */
  output?: string
}

export interface Child {
  name: string
  pid: number
  /** How it ended; null while it runs. */
  ended: () => string | null
  /** Resolves when it has ended. */
  gone: Promise<void>
  /** Signals the program and its workers; no effect once all of them have ended. */
  signal: (signal: NodeJS.Signals) => void
  /** The beginning of what it wrote to its standard error. */
  complaint: () => string
}

/** Signals the process group that this process leads; 0 only looks. False: the whole group has ended. */
function signalGroup (pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}

/** Where a program is on the PATH (and the system directories that a user's PATH may lack); null: not installed. */
export function which (program: string): string | null {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/local/sbin', '/usr/sbin', '/sbin']
  return folders.map(folder => join(folder, program)).find(path => existsSync(path)) ?? null
}

/** The first line of what `program ...args` prints, as its version. */
export function versionOf (program: string, ...args: string[]): string {
  const { stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', timeout: 10_000 })
  return (`${stdout ?? ''}${stderr ?? ''}`.trim().split('\n')[0] ?? '').trim()
}

/** The folder of package.json, above this file both in the sources and in the build. */
export function packageRoot (): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'package.json'))) {
    const above = dirname(folder)
    if (above === folder) throw new Error('no package.json above the benchmark')
    folder = above
  }
  return folder
}

/** A file of the build that lies beside the one that asks, e.g. `built('bench/peers/http-proxy.js')`. */
export const built = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url))

/** `count` TCP ports of 127.0.0.1 that were free a moment ago, all different. */
export async function freePorts (count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => new Promise<ReturnType<typeof createServer>>((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => resolve(server))
  })))
  const ports = servers.map(server => (server.address() as AddressInfo).port)
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
  return ports
}

/** Everything that a run starts and writes: one place from which all of it goes away again. */
export class Workshop {
  readonly #children = new Map<ChildProcess, Promise<void>>()
  readonly #stopping = new AbortController()
  readonly folder = mkdtempSync(join(tmpdir(), 'breakwater-bench-'))
  /** Aborted when all must stop: what runs a program for a moment (a client, a compiler) ends it then. */
  readonly signal: AbortSignal = this.#stopping.signal

  constructor () {
    // nginx, started by root, serves its files and spools as another user.
    chmodSync(this.folder, 0o755)
  }

  /** A new folder for one program's files. */
  place (name: string): string {
    const folder = join(this.folder, name)
    mkdirSync(folder, { recursive: true })
    return folder
  }

  /**
   * Starts a program as the leader of its own process group, so that its workers end with it.
   * @throws when it cannot be started at all.
   */
  start (name: string, { program, args, env, output }: Command): Child {
    this.signal.throwIfAborted()
    const errors = join(this.folder, `${name}.stderr`)
    const out = openSync(output ?? '/dev/null', 'w')
    const err = openSync(errors, 'w')
    const child = spawn(program, args, { cwd: this.place(name), env: { ...process.env, ...env }, stdio: ['ignore', out, err], detached: true })
    closeSync(out)
    closeSync(err)
    let ended: string | null = null
    const gone = new Promise<void>(resolve => {
      child.once('error', error => { ended = error.message; resolve() })
      child.once('exit', (code, signal) => { ended = signal ?? `exit code ${code}`; resolve() })
    })
    if (child.pid === undefined) throw new Error(`${program} cannot be started`)
    const { pid } = child
    this.#children.set(child, gone)
    // A number that is free may be given to somebody else's process.
    void gone.then(() => signalGroup(pid, 0) || this.#children.delete(child))
    return { name, pid, ended: () => ended, gone, signal: signal => { signalGroup(pid, signal) }, complaint: () => readFileSync(errors, 'utf8').trim().split('\n').slice(0, 12).join('\n') }
  }

  #signal (signal: NodeJS.Signals): void {
    for (const { pid } of this.#children.keys()) if (pid !== undefined) signalGroup(pid, signal)
  }

  /** Ends all children, politely for up to two seconds, and removes every file. Never throws; may be called again. */
  async close (): Promise<void> {
    if (this.signal.aborted) return
    this.#stopping.abort(new Error('the benchmark is stopping'))
    this.#signal('SIGTERM')
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise(resolve => { timer = setTimeout(resolve, 2000) })
    await Promise.race([Promise.all(this.#children.values()), patience])
    clearTimeout(timer)
    this.kill()
  }

  /** The same at once and without waiting, for a process that is about to exit. */
  kill (): void {
    this.#stopping.abort(new Error('the benchmark is stopping'))
    this.#signal('SIGKILL')
    rmSync(this.folder, { recursive: true, force: true })
  }
}
