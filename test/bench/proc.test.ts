import { test } from 'node:test'
import assert from 'node:assert/strict'
import { parsePeakKib, parseStat, treeOf, type ProcStat } from '../../bench/proc.ts'

const stat = (pid: number, parent: number): ProcStat => ({ pid, parent, ticks: 1 })
const rest = 'S 41 42 42 0 -1 4194304 1111 0 0 0 250 50 7 3 20 0 1 0 12345 1000000 200'

test('a stat line gives the parent and all four times, children included', () => {
  assert.deepEqual(parseStat(`42 (node) ${rest}\n`), { pid: 42, parent: 41, ticks: 310 })
})

test('a command name may hold spaces and parentheses', () => {
  assert.deepEqual(parseStat(`42 (a) S 9 (b c) ${rest}`), { pid: 42, parent: 41, ticks: 310 })
})

test('what is no stat line gives nothing', () => {
  for (const line of ['', '42', '42 node S 1', 'x (node) S y', `42 (node) S 41`]) assert.equal(parseStat(line), null)
})

test('the peak memory is the VmHWM line', () => {
  assert.equal(parsePeakKib('Name:\tnode\nVmPeak:\t  999 kB\nVmHWM:\t   51234 kB\nVmRSS:\t 1 kB\n'), 51234)
  assert.equal(parsePeakKib('Name:\tkthreadd\n'), 0)
})

test('a tree is a process with its children and theirs, and nobody else', () => {
  const all = [stat(1, 0), stat(30, 20), stat(10, 1), stat(20, 10), stat(21, 10), stat(99, 1)]
  assert.deepEqual(treeOf(all, 10).map(({ pid }) => pid), [10, 20, 21, 30])
  assert.deepEqual(treeOf(all, 99).map(({ pid }) => pid), [99])
  assert.deepEqual(treeOf(all, 7), [])
})
