/** What may be done on the admin page: each asks before it acts. */
import assert from 'node:assert/strict'
import { after, describe } from 'node:test'
import type { Page } from 'playwright-core'
import { startUpstream } from '../../bin/scripted-upstream.ts'
import { parseConfig } from '../../config/parse.ts'
import type { Config } from '../../config/schema.ts'
import { closeBrowser, inBrowser, open, openDetail, startShown } from './support.ts'

/** Answers the dialog that is open, and gives what came of it. */
async function confirm (page: Page, button: string, fill: { reason?: string, duration?: string } = {}): Promise<string> {
  const dialog = page.getByRole('dialog')
  if (fill.duration !== undefined) await dialog.getByRole('combobox').selectOption({ label: fill.duration })
  if (fill.reason !== undefined) await dialog.getByLabel('Reason').fill(fill.reason)
  await dialog.getByRole('button', { name: button, exact: true }).click()
  await dialog.getByRole('button', { name: 'Close', exact: true }).waitFor()
  const result = await dialog.getByRole('status').textContent() ?? ''
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  return result
}

describe('the actions of the admin page', () => {
  after(closeBrowser)

  inBrowser('check, drain, take back, force, end the force and reset: each says what will happen, wants a reason, and shows what came of it', async (t) => {
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    const { app, url } = await startShown(t, { upstreams: [upstream.url], pool: { health: { intervalMs: 60000 } } })
    const id = `127.0.0.1:${upstream.port}`
    const { page } = await open(url)
    const detail = await openDetail(page, id)
    const reason = 'kernel update'
    const press = async (name: string, says: RegExp) => {
      await detail.getByRole('button', { name, exact: true }).click()
      const dialog = page.getByRole('dialog')
      assert.ok((await dialog.getByRole('heading').textContent())?.endsWith(`shop / ${id}`))
      assert.match(await dialog.textContent() ?? '', says)
    }
    const breaker = () => app.breakers.find('shop', id)!.snapshot()

    await press('Check now', /A health check is made at once/)
    assert.match(await confirm(page, 'Check now', { reason }), /^The check passed: check passed \(200\) in [\d.]+ ms\. The upstream is healthy\.$/)
    await press('Drain…', /It gets no new requests/)
    assert.match(await confirm(page, 'Drain', { reason, duration: '15 minutes' }), /^Draining, until \d\d:\d\d:\d\d\.$/)
    assert.deepEqual([app.pools.find('shop', id)?.drain?.reason, app.pools.find('shop', id)?.drain?.until === null], [reason, false])
    await press('Take back…', /It gets requests again/)
    assert.equal(await confirm(page, 'Take back', { reason }), 'Back in rotation.')
    assert.equal(app.pools.find('shop', id)?.draining, false)
    await press('Force open…', /No request is sent to it, and no probe/)
    assert.match(await confirm(page, 'Force open', { reason, duration: '1 hour' }), /^Forced open, until/)
    assert.deepEqual([breaker().force?.state, breaker().force?.reason], ['open', reason])
    await press('Force closed…', /whatever comes back/)
    assert.match(await confirm(page, 'Force closed', { reason }), /^Forced closed, until/)
    await press('End the force…', /goes by what it has seen again/)
    assert.equal(await confirm(page, 'End the force', { reason }), 'Not forced any more; the breaker is closed.')
    assert.equal(breaker().force, null)
    await press('Reset breaker…', /closed with a clean record/)
    assert.equal(await confirm(page, 'Reset', { reason }), 'The breaker is closed.')

    const writes = app.events.since(0).events.filter(({ type }) => type === 'admin_write')
    assert.deepEqual(writes.map(({ action }) => action), ['health_check', 'upstream_drain', 'upstream_ready', 'breaker_force', 'breaker_force', 'breaker_force', 'breaker_reset'])
    assert.ok(writes.every((each) => each['reason'] === reason))
  })

  inBrowser('nothing is done without a reason or after Esc; the focus stays in the dialog and goes back', async (t) => {
    const { app, url } = await startShown(t, { upstreams: ['http://127.0.0.1:9'] })
    const { page } = await open(url)
    await page.getByRole('button', { name: '127.0.0.1:9', exact: true }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Drain…' }).focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Drain', exact: true }).click()
    assert.equal(await page.evaluate('document.querySelector("dialog input").validity.valueMissing'), true)
    for (let i = 0; i < 12; i++) {
      await page.keyboard.press('Tab')
      assert.ok(await page.evaluate('document.activeElement === document.body || document.querySelector("dialog").contains(document.activeElement)'), `after ${i + 1} tabs`)
    }
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Drain…')
    assert.equal(app.pools.find('shop', '127.0.0.1:9')?.draining, false)
  })

  inBrowser('what the proxy refuses is told in the dialog, and may be tried again', async (t) => {
    const { app, url } = await startShown(t, { upstreams: ['http://127.0.0.1:9', 'http://127.0.0.1:10'] })
    const { page } = await open(url, {}, /404/)
    const detail = await openDetail(page, '127.0.0.1:10')
    await detail.getByRole('button', { name: 'Drain…' }).click()
    await app.configuration.apply({ pools: { shop: { upstreams: ['http://127.0.0.1:9'].map((each) => ({ url: each })), health: { enabled: false } } }, admin: { enabled: false } })
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Reason').fill('late')
    await dialog.getByRole('button', { name: 'Drain', exact: true }).click()
    await dialog.getByText('Not done. pool "shop" has no upstream "127.0.0.1:10"').waitFor()
    assert.equal(await dialog.getByRole('button', { name: 'Drain', exact: true }).isEnabled(), true)
  })

  inBrowser('a reload shows its diff first, and what cannot be taken with its errors', async (t) => {
    const { app, url } = await startShown(t, { upstreams: ['http://127.0.0.1:9', 'http://127.0.0.1:10'] })
    const changed = (changes: object): Config => parseConfig({ ...structuredClone(app.configuration.current), ...changes }, 'the test')
    const pools = (upstreams: string[]) => ({ shop: { ...structuredClone(app.configuration.current.pools['shop']), upstreams: upstreams.map((each) => ({ url: each })) } })
    let load = (): Config => changed({ pools: pools(['http://127.0.0.1:9', 'http://127.0.0.1:11']) })
    app.configuration.follow({ load: () => load(), file: null })
    const { page } = await open(url, {}, /422/)
    const reload = page.getByRole('button', { name: 'Reload configuration…' })
    const dialog = page.getByRole('dialog')

    await reload.click()
    await dialog.getByText('shop / 127.0.0.1:11').waitFor()
    assert.match(await dialog.textContent() ?? '', /Upstreams addedshop \/ 127\.0\.0\.1:11Upstreams removedshop \/ 127\.0\.0\.1:10/)
    assert.equal(app.configuration.view().version, 1)
    assert.equal(await confirm(page, 'Reload', { reason: 'new server' }), 'The configuration is in force.')
    assert.equal(app.configuration.view().version, 2)
    await page.locator('#config', { hasText: 'Configuration 2' }).waitFor()
    await page.getByRole('button', { name: '127.0.0.1:11', exact: true }).waitFor()

    load = () => changed({ pools: {} })
    await reload.click()
    await dialog.getByText('What the configuration says now is refused').waitFor()
    assert.equal(await dialog.getByRole('button', { name: 'Reload', exact: true }).isDisabled(), true)
    await page.keyboard.press('Escape')

    load = () => changed({ server: { maxHeaderBytes: 32768 } })
    await reload.click()
    await dialog.getByText('server.maxHeaderBytes').waitFor()
    assert.equal(await dialog.getByRole('button', { name: 'Reload', exact: true }).isDisabled(), true)
  })
})
