import { readdirSync, readFileSync } from 'node:fs'

/** Clock ticks a second in /proc (USER_HZ): 100 on every Linux that Node is built for. */
const TICKS_PER_SECOND = 100

export interface ProcStat {
  pid: number
  parent: number
  /** User and system time of the process and of its children that have been waited for, in clock ticks. */
  ticks: number
}

/** One line of /proc/<pid>/stat; null when it is none. The command name may hold spaces and parentheses. */
export function parseStat (line: string): ProcStat | null {
  const open = line.indexOf('(')
  const close = line.lastIndexOf(')')
  if (open === -1 || close < open) return null
  const fields = line.slice(close + 1).trim().split(/\s+/)
  // proc(5) counts from 1: ppid is field 4, utime..cstime are 14..17; `fields` begins at field 3.
  const pid = Number(line.slice(0, open))
  const parent = Number(fields[1])
  const ticks = Number(fields[11]) + Number(fields[12]) + Number(fields[13]) + Number(fields[14])
  if (!Number.isInteger(pid) || !Number.isInteger(parent) || Number.isNaN(ticks)) return null
  return { pid, parent, ticks }
}

/** The peak resident memory in KiB from the text of /proc/<pid>/status; 0 where it has none. */
export const parsePeakKib = (status: string): number => kib(/^VmHWM:\s+(\d+) kB$/m, status)

/** The resident memory in KiB, the same way. */
export const parseResidentKib = (status: string): number => kib(/^VmRSS:\s+(\d+) kB$/m, status)

function kib (line: RegExp, status: string): number {
  const match = line.exec(status)
  return match === null ? 0 : Number(match[1])
}

/** The entries of `stats` that are `root` or descend from it. */
export function treeOf (stats: readonly ProcStat[], root: number): ProcStat[] {
  const children = new Map<number, ProcStat[]>()
  for (const stat of stats) {
    const siblings = children.get(stat.parent)
    if (siblings === undefined) children.set(stat.parent, [stat])
    else siblings.push(stat)
  }
  const tree = stats.filter(stat => stat.pid === root)
  // The loop also visits what it appends.
  for (const stat of tree) tree.push(...(children.get(stat.pid) ?? []))
  return tree
}

const read = (path: string): string | null => {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return null // it ended between the listing and the reading
  }
}

function readTree (root: number): ProcStat[] {
  const stats: ProcStat[] = []
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const line = read(`/proc/${name}/stat`)
    const stat = line === null ? null : parseStat(line)
    if (stat !== null) stats.push(stat)
  }
  return treeOf(stats, root)
}

/** User plus system time of a process and all below it, in seconds; resolution 10 ms. */
export const cpuSeconds = (root: number): number => readTree(root).reduce((sum, stat) => sum + stat.ticks, 0) / TICKS_PER_SECOND

/** The sum of the peak resident memory of a process and all below it, in KiB. Shared pages count once a process. */
export const peakKib = (root: number): number =>
  readTree(root).reduce((sum, { pid }) => sum + parsePeakKib(read(`/proc/${pid}/status`) ?? ''), 0)

/** The same of what is resident now. */
export const residentKib = (root: number): number =>
  readTree(root).reduce((sum, { pid }) => sum + parseResidentKib(read(`/proc/${pid}/status`) ?? ''), 0)
