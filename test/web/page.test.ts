/** What the admin page shows, in a real browser. */
import assert from 'node:assert/strict'
import { after, describe } from 'node:test'
import { startUpstream } from '../../bin/scripted-upstream.ts'
import { rawRequest } from '../support/raw-client.ts'
import { until } from '../support/wait.ts'
import { closeBrowser, inBrowser, open, openDetail, rowOf, startShown } from './support.ts'

const hostile = '<img src=x onerror="globalThis.hacked = true">'

describe('the admin page', () => {
  after(closeBrowser)

  inBrowser('shows at once what happened before it was opened, and asks nobody else', async (t) => {
    const upstreams = await Promise.all([startUpstream({ failEvery: 4 }), startUpstream()])
    t.after(() => Promise.all(upstreams.map((each) => each.close())))
    const { app, url, port } = await startShown(t, { upstreams: upstreams.map((each) => each.url) })
    for (let i = 0; i < 24; i++) await fetch(`http://127.0.0.1:${port}/`)
    await until(() => app.history.since(0).all.requests.reduce((sum, each) => sum + each, 0) === 24, { timeoutMs: 30000, what: 'the end of the steps' })
    const { page, urls } = await open(url)
    await page.getByRole('heading', { name: 'All 2 upstreams serve' }).waitFor()
    assert.equal(await page.locator('#charts canvas').count(), 4)
    assert.match(String(await page.getByRole('img', { name: /^Requests per second/ }).getAttribute('aria-label')), /24 requests in 15 minutes$/)
    assert.match(await page.locator('#status').textContent() ?? '', /^Live/)
    await page.getByText('Configuration 1').waitFor()
    const row = rowOf(page, `127.0.0.1:${upstreams[0].port}`)
    assert.match(await row.textContent() ?? '', /Serving.*0 of 128/)
    assert.equal(await row.locator('svg').getAttribute('aria-label'), 'Window of 3600 s: 12 results, 3 failed (25 %)')
    const detail = await openDetail(page, `127.0.0.1:${upstreams[0].port}`)
    await detail.getByRole('button', { name: 'Show in the charts' }).click()
    await page.getByRole('img', { name: /12 requests in 15 minutes$/ }).first().waitFor()
    for (const each of urls) assert.ok(each.startsWith(url), each)
  })

  inBrowser('tells what an upstream was ejected for', async (t) => {
    const upstreams = await Promise.all([startUpstream({ failRatio: 1, failStatus: 503 }), startUpstream()])
    t.after(() => Promise.all(upstreams.map((each) => each.close())))
    const { url, port } = await startShown(t, { upstreams: upstreams.map((each) => each.url), pool: { ejection: { mode: 'enforce', consecutiveFailures: 3 } } })
    for (let i = 0; i < 6; i++) await fetch(`http://127.0.0.1:${port}/`)
    const { page } = await open(url)
    await page.getByRole('heading', { name: '1 of 2 upstreams is out' }).waitFor()
    assert.match(await rowOf(page, `127.0.0.1:${upstreams[0].port}`).textContent() ?? '', /Ejected 3 failures in a row; back in \d+ s, at \d\d:\d\d:\d\d/)
  })

  inBrowser('tells by itself when an upstream dies: its state and cause, the verdict, the timeline, and a screen reader', async (t) => {
    const upstreams = await Promise.all([startUpstream(), startUpstream()])
    t.after(() => Promise.all(upstreams.map((each) => each.close())))
    const { app, url, port } = await startShown(t, { upstreams: upstreams.map((each) => each.url), pool: { breaker: { consecutiveFailures: 3, openMs: 60000 }, health: { intervalMs: 50 } } })
    const { page } = await open(url)
    await page.getByRole('heading', { name: 'All 2 upstreams serve' }).waitFor()
    await until(async () => await page.locator('#status').textContent() === 'Live', { timeoutMs: 30000, what: 'the stream' })
    const id = `127.0.0.1:${upstreams[0].port}`
    upstreams[0].set({ failRatio: 1 })
    for (let i = 0; i < 8; i++) await fetch(`http://127.0.0.1:${port}/`)
    await page.getByRole('heading', { name: '1 of 2 upstreams is out' }).waitFor()
    assert.match(await rowOf(page, id).textContent() ?? '', /Breaker open 3 failures in a row \(status 500\); probes in \d+ s, at \d\d:\d\d:\d\d/)
    await page.locator('#events').getByText('Breaker: opened after 3 failures in a row (consecutiveFailures 3; last: status_500), for 6').waitFor()
    await page.locator('#news', { hasText: `${id}: Breaker: opened` }).waitFor({ state: 'attached' })
    assert.match(await (await openDetail(page, id)).textContent() ?? '', /Open after 3 failures in a row \(consecutiveFailures 3; last: status_500\): it refuses everybody for another/)
    // From the transition to the requests that it is for.
    const requests = app.events.since(0).events.find(({ type }) => type === 'breaker_transition')?.['requests'] as string[]
    const item = page.locator('#events > ol > li[data-tone="out"]').filter({ hasText: 'Breaker: opened' })
    await item.getByText('3 requests', { exact: true }).click()
    assert.deepEqual(await item.getByRole('button').allTextContents(), requests)
    await item.getByRole('button', { name: requests[1] as string }).click()
    await item.getByText(`Attempt at ${id}`).waitFor()
    assert.match(await item.textContent() ?? '', /Why.*500.*Attempt at/)
    // What keeps it out whatever its breaker does is told first, as `breakwater status` has it.
    upstreams[0].set({ failRatio: 0, refuseHealth: true })
    await rowOf(page, id).getByText('Unhealthy', { exact: true }).waitFor()
    assert.match(await rowOf(page, id).textContent() ?? '', /Unhealthy status 503, .*; Breaker open: 3 failures in a row/)
    upstreams[0].set({ refuseHealth: false })
    app.breakers.find('shop', id)?.reset('test')
    await page.getByRole('heading', { name: 'All 2 upstreams serve' }).waitFor()

    // One whose checks fail is out, whatever its breaker would let through.
    app.breakers.find('shop', id)?.force('closed', 60000, 'a drill')
    await page.locator('tr[data-tone="warn"]', { hasText: 'Forced closed' }).waitFor()
    upstreams[0].set({ refuseHealth: true })
    await page.getByRole('heading', { name: '1 of 2 upstreams is out' }).waitFor()
    assert.match(await rowOf(page, id).textContent() ?? '', /Unhealthy status 503.*; Forced closed: for/)
    upstreams[0].set({ refuseHealth: false })
    app.breakers.find('shop', id)?.reset('test')
    await page.getByRole('heading', { name: 'All 2 upstreams serve' }).waitFor()

    const watched = app.breakers.get('shop', `127.0.0.1:${upstreams[1].port}`, { mode: 'observe' })
    watched.force('open', 60000, 'a drill')
    await page.locator('#events li[data-tone="warn"]', { hasText: 'Breaker: forced open for 60 s (a drill). Observe mode: it refuses nobody.' }).waitFor()
    await page.locator('tr[data-tone="warn"]', { hasText: 'Forced open refuses nobody, as it only observes; for' }).waitFor()
    await page.getByRole('heading', { name: 'All 2 upstreams serve' }).waitFor()
  })

  inBrowser('shows requests that were refused, each with its explanation', async (t) => {
    const { app, url, port } = await startShown(t, { upstreams: ['http://127.0.0.1:9'], routes: [{ path: '/*', pool: 'shop' }] })
    app.breakers.find('shop', '127.0.0.1:9')?.force('open', 60000, 'a drill')
    const refused = await fetch(`http://127.0.0.1:${port}/orders/7?secret=1`)
    const { requestId } = await refused.json() as { requestId: string }
    const { page } = await open(url)
    const requests = page.locator('#requests')
    await requests.getByRole('button', { name: 'GET /orders/7', exact: true }).click()
    await requests.getByText(requestId).waitFor()
    assert.match(await requests.textContent() ?? '', /breaker open.*503.*127\.0\.0\.1:9.*breaker forced open/)
    assert.match(await page.locator('#gate').textContent() ?? '', /places taken/)
  })

  inBrowser('shows what an upstream itself answered badly, and one row for all that are alike, however many ordinary requests are recorded', async (t) => {
    const upstreams = await Promise.all([startUpstream(), startUpstream()])
    t.after(() => Promise.all(upstreams.map((each) => each.close())))
    const { app, url, port } = await startShown(t, { upstreams: upstreams.map((each) => each.url), pool: { breaker: { mode: 'observe' } } })
    app.recorder.configure({ sampleRatio: 1 })
    const ask = async (path: string): Promise<void> => { await (await fetch(`http://127.0.0.1:${port}${path}`)).text() }
    for (const each of upstreams) each.set({ failRatio: 1 })
    for (let i = 1; i <= 3; i++) await ask(`/orders/${i}`)
    for (const each of upstreams) each.set({ failRatio: 0 })
    for (let i = 0; i < 60; i++) await ask('/ordinary')
    const { page } = await open(url)
    const rows = page.locator('#requests tbody tr:not(.detail)')
    await rows.first().waitFor()
    assert.equal(await rows.count(), 1)
    assert.match(await rows.textContent() ?? '', /GET \/orders\/3.*by the upstream 500, 3 alike/)
    await page.getByRole('button', { name: 'GET /orders/3' }).click()
    await page.locator('#requests').getByText(/^Attempt at/).waitFor()
    await page.getByText('2 earlier requests like it').click()
    await page.locator('#requests ul').getByRole('button').last().click()
    await page.locator('#requests details dl').waitFor()
    // Another one of the kind is told in the same row; what is open stays.
    for (const each of upstreams) each.set({ failRatio: 1 })
    await ask('/orders/4')
    await page.getByRole('button', { name: 'GET /orders/4' }).waitFor()
    assert.match(await rows.textContent() ?? '', /500, 4 alike/)
    assert.ok(await page.locator('#requests details dl').isVisible())
  })

  inBrowser('takes whatever comes for text', async (t) => {
    const { app, url, port } = await startShown(t, { pools: { shop: { health: { enabled: false }, upstreams: [{ url: `unix:/run/${encodeURIComponent('<b>x')}.sock` }, { url: 'http://127.0.0.1:9' }] } } })
    const [first, second] = app.pools.get('shop')!.upstreams
    app.breakers.find('shop', first!.id)?.force('open', 60000, hostile)
    app.pools.setDraining('shop', second!.id, true, { reason: hostile })
    app.events.record('config_rejected', { errors: [{ path: hostile, message: hostile }] })
    const path = '/<img/src=x/onerror=globalThis.hacked=true>'
    await rawRequest(port, `GET ${path} HTTP/1.1\r\nHost: shop\r\nX-Hostile: ${hostile}\r\n\r\n`)
    app.events.record(hostile, { pool: hostile, upstream: hostile, [hostile]: hostile })
    app.events.record('breaker_transition', { pool: hostile, upstream: hostile, mode: hostile, from: 'closed', to: hostile, cause: hostile, requests: [hostile, { toString: hostile }] })
    const { page } = await open(url)
    await page.locator('#events').getByText(hostile).first().waitFor()
    await page.locator('#events').getByText(`Configuration refused: ${hostile} ${hostile}`).waitFor()
    await page.getByRole('button', { name: `GET ${path}` }).click()
    await page.locator('#events').getByText('1 request', { exact: true }).click()
    await page.locator('#events').getByRole('button', { name: hostile }).waitFor()
    assert.match(await rowOf(page, '127.0.0.1:9').textContent() ?? '', /Draining until taken back \(<img/)
    const detail = await openDetail(page, first!.id)
    assert.match(await detail.textContent() ?? '', /<img src=x/)
    await detail.getByRole('button', { name: 'End the force' }).click()
    await page.getByRole('dialog').waitFor()
    assert.deepEqual(await page.evaluate('[globalThis.hacked === true, document.querySelectorAll("img, b").length]'), [false, 0])
  })

  inBrowser('folds those that serve away where they are many, and finds any', async (t) => {
    const urls = Array.from({ length: 300 }, (_each, i) => `http://127.0.${1 + Math.floor(i / 200)}.${1 + i % 200}:9`)
    const { app, url } = await startShown(t, { upstreams: urls })
    app.breakers.find('shop', '127.0.2.7:9')?.force('open', 60000, 'a drill')
    const { page } = await open(url)
    await page.getByRole('heading', { name: '1 of 300 upstreams is out' }).waitFor()
    const rows = page.locator('.pool tbody tr:not(.detail)')
    assert.equal(await rows.count(), 1)
    await page.getByRole('searchbox', { name: 'Find' }).fill('127.0.1.42:')
    assert.match(await rows.first().textContent() ?? '', /127\.0\.1\.42:9/)
    assert.equal(await rows.count(), 1)
    await page.getByRole('searchbox', { name: 'Find' }).fill('')
    await page.getByRole('button', { name: 'Show 299 more that serve' }).click()
    assert.equal(await rows.count(), 300)
    await page.getByRole('checkbox', { name: 'Trouble only' }).check()
    assert.equal(await rows.count(), 1)
  })
})
