/** The admin page while the proxy is gone, and with a token. */
import assert from 'node:assert/strict'
import { after, describe } from 'node:test'
import Fastify from 'fastify'
import { build } from '../../examples/admin-under-prefix.ts'
import { until } from '../support/wait.ts'
import { closeBrowser, inBrowser, open, openDetail, rowOf, startShown } from './support.ts'

const gone = /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|ERR_ABORTED|404/

describe('the admin page', () => {
  after(closeBrowser)

  inBrowser('says that it is stale and since when while the proxy is gone, and comes back by itself', async (t) => {
    const first = await startShown(t, { upstreams: ['http://127.0.0.1:9'] })
    const port = first.app.adminAddress!.port
    const { page } = await open(first.url, {}, gone)
    const detail = await openDetail(page, '127.0.0.1:9')
    await until(async () => await page.locator('#status').textContent() === 'Live', { timeoutMs: 30000, what: 'the stream' })
    await first.close()
    await page.getByText(/^Stale since \d\d:\d\d:\d\d$/).waitFor()
    const notice = page.getByRole('alert')
    assert.match(await notice.textContent() ?? '', /^The proxy does not answer\. What is shown was so at \d\d:\d\d:\d\d\./)
    assert.equal(await page.evaluate('document.body.classList.contains("stale")'), true)
    assert.equal(await detail.getByRole('button', { name: 'Drain…' }).isDisabled(), true)

    const second = await startShown(t, { upstreams: ['http://127.0.0.1:9', 'http://127.0.0.1:10'], port })
    second.app.pools.setDraining('shop', '127.0.0.1:10', true, { reason: 'after the restart' })
    await until(async () => await page.locator('#status').textContent() === 'Live', { timeoutMs: 45000, what: 'back' })
    assert.match(await rowOf(page, '127.0.0.1:10').textContent() ?? '', /Draining/)
    await page.locator('#events').getByText('Draining: after the restart').waitFor()
    assert.equal(await notice.isVisible(), false)
    assert.equal(await detail.getByRole('button', { name: 'Drain…' }).isEnabled(), true)
  })

  inBrowser('asks for the token, keeps it for the tab, and never has it in an address', async (t) => {
    const token = 'pass phrase ünusual'
    const { url } = await startShown(t, { upstreams: ['http://127.0.0.1:9'], token })
    const { page, urls } = await open(url, {}, /401/)
    const form = page.getByRole('form', { name: 'Admin token' })
    await form.waitFor()
    assert.equal(await page.locator('#main').isVisible(), false)
    await form.getByRole('textbox', { name: 'Token' }).fill('wrong')
    await page.keyboard.press('Enter')
    await form.getByText('The proxy did not take this token.').waitFor()
    await form.getByRole('textbox', { name: 'Token' }).fill(token)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'The upstream serves' }).waitFor()
    await until(async () => await page.locator('#status').textContent() === 'Live', { timeoutMs: 30000, what: 'the stream' })
    await page.reload()
    await page.getByRole('heading', { name: 'The upstream serves' }).waitFor()
    await page.getByRole('button', { name: 'Forget token' }).click()
    await form.waitFor()
    for (const each of urls) assert.doesNotMatch(each, /pass|wrong/)
    assert.deepEqual(await page.evaluate('[sessionStorage.length, localStorage.length, document.cookie]'), [0, 0, ''])
  })

  inBrowser('lies below any prefix, and shows what the app has', async (t) => {
    const app = await build('the-token', ['http://127.0.0.1:9'])
    const outer = Fastify()
    t.after(() => Promise.all([app.close(), outer.close()]))
    const address = await app.listen({ port: 0, host: '127.0.0.1' })
    const { page, urls } = await open(`${address}/ops`, {}, /401|404/)
    await page.getByRole('textbox', { name: 'Token' }).fill('the-token')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: '1 of 1 upstream is out' }).waitFor()
    assert.match(await rowOf(page, '127.0.0.1:9').textContent() ?? '', /Unhealthy|Not checked yet/)
    assert.equal(await page.locator('#traffic').isVisible(), false)
    assert.equal(await page.getByRole('button', { name: 'Reload configuration…' }).isVisible(), false)
    for (const each of urls.slice(1)) assert.ok(each.startsWith(`${address}/ops/`), each)
  })
})
