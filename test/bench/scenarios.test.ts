import { test } from 'node:test'
import assert from 'node:assert/strict'
import { parseOptions } from '../../bench/options.ts'
import { printBytes, summarize } from '../../bench/report.ts'
import { movedBytes, scenarios } from '../../bench/scenarios.ts'

test('a scenario of long bodies goes over few connections, unless told otherwise', () => {
  assert.equal(parseOptions(['--scenario', 'download'])?.connections, 4)
  assert.equal(parseOptions(['--scenario', 'upload', '--connections', '8'])?.connections, 8)
})

test('only where bodies are long are their bytes what costs', () => {
  assert.deepEqual([movedBytes(scenarios.get), movedBytes(scenarios.post), movedBytes(scenarios.large)], [0, 0, 0])
  assert.equal(movedBytes(scenarios.download), scenarios.download.responseBytes)
  assert.equal(movedBytes(scenarios.upload), scenarios.upload.requestBytes)
})

test('what bytes cost is told for a GiB', () => {
  const rounds = [{ invalid: null, requests: 10, cpuMicros: 1000, busy: 0.9, requestsPerSecond: 64, p50: 1, p99: 2 }]
  const printed = printBytes(summarize([{ name: 'breakwater', features: '', version: '', rounds, peakKib: 1 }], 'breakwater'), 2 ** 24)
  assert.match(printed, /breakwater\s+64\s+64-64\s+1024/)
})
