/**
 * Takes the pictures of docs/guide-admin-page.md: `npm run pictures`, in 14 minutes (or as many as are given), so that the plots are full.
 * A gateway whose upstreams fall ill one after the other; its limits for pressure are off, since a busy machine is no part of the scene.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import Fastify from 'fastify'
import { chromium } from 'playwright-core'
import breakwater from '../../breakwater.ts'
import { startUpstream } from '../../bin/scripted-upstream.ts'
import { parseConfig } from '../../config/parse.ts'
import { chromiumPath } from './support.ts'

const minutes = Number(process.argv[2] ?? 14)
const perSecond = 40
const pictureOf = (name: string): string => fileURLToPath(new URL(`../../../docs/${name}`, import.meta.url))

const upstreams = await Promise.all([8, 14, 11, 9, 20, 25, 30, 35].map((delayMs, i) => startUpstream({ name: `up-${i}`, delayMs, jitterMs: delayMs, seed: i + 1 })))
const urls = upstreams.map(({ url }) => ({ url }))
const pools = {
  shop: { upstreams: urls.slice(0, 4), breaker: { openMs: 10000 }, health: { intervalMs: 1000 }, maxInFlightPerUpstream: 24 },
  users: { upstreams: urls.slice(4, 6), balancer: 'p2c', health: { intervalMs: 1000 } },
  search: { upstreams: urls.slice(6), breaker: { mode: 'observe' } }
}
const app = Fastify({ logger: false })
await app.register(breakwater, parseConfig({
  admin: { port: 0 },
  shedding: { maxInFlight: 24, pressure: { maxEventLoopDelayMs: 0, maxEventLoopUtilization: 0 } },
  pools,
  routes: [{ path: '/products/*', pool: 'shop' }, { path: '/users/*', pool: 'users' }, { path: '/search', pool: 'search' }]
}, 'the scene'))
const url = await app.listen({ port: 0, host: '127.0.0.1' })
const idOf = (i: number): string => new URL(upstreams[i]?.url ?? '').host

const paths = ['/products/1', '/products/2', '/users/ada', '/products/3', '/search', '/users/linus', '/products/4', '/search']
const ask = async (path: string): Promise<void> => { await fetch(`${url}${path}`).then((response) => response.arrayBuffer(), () => {}) }
let sent = 0
const load = setInterval(() => { void ask(paths[sent++ % paths.length] as string) }, 1000 / perSecond)

/** What happens, at which part of the time. */
const scene: ReadonlyArray<readonly [at: number, act: () => unknown]> = [
  [0.30, () => upstreams[2]?.set({ failEvery: 14 })],
  [0.45, () => upstreams[1]?.set({ failRatio: 1 })],
  [0.55, () => upstreams[5]?.set({ refuseHealth: true })],
  [0.62, () => Promise.all(Array.from({ length: 400 }, () => ask('/products/5')))],
  [0.70, () => upstreams[7]?.set({ failRatio: 0.9 })],
  [0.80, () => app.pools.setDraining('shop', idOf(3), true, { reason: 'kernel update', ttlMs: 1800000 })],
  [0.98, () => Promise.all(Array.from({ length: 3 }, () => ask('/prodcuts/5')))]
]
const began = performance.now()
for (const [at, act] of scene) {
  await sleep(Math.max(0, began + at * minutes * 60000 - performance.now()))
  void act()
}
await sleep(Math.max(0, began + minutes * 60000 - performance.now()))

const executablePath = chromiumPath()
if (executablePath === null) throw new Error('there is no Chromium')
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
for (const [name, colorScheme, width, height] of [['admin-page.png', 'light', 1440, 1420], ['admin-page-phone.png', 'dark', 390, 1500]] as const) {
  const page = await browser.newPage({ colorScheme, viewport: { width, height } })
  await page.goto(`http://127.0.0.1:${app.adminAddress?.port}/`)
  await page.getByText('Live', { exact: true }).waitFor()
  if (width > 1000) await page.getByRole('button', { name: idOf(1), exact: true }).click()
  await page.locator('#requests tbody tr').first().waitFor()
  await sleep(4000)
  await page.screenshot({ path: pictureOf(name) })
  process.stdout.write(`wrote ${pictureOf(name)}\n`)
}
await browser.close()
clearInterval(load)
await app.close()
await Promise.all(upstreams.map((each) => each.close()))
