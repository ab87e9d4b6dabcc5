/** The admin page for whoever reads it with a screen reader, in the dark or on a phone, judged by axe. */
import assert from 'node:assert/strict'
import { after, describe } from 'node:test'
import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { closeBrowser, inBrowser, open, openDetail, startShown } from './support.ts'

/** What axe finds, in a line each. */
async function violations (page: Page): Promise<string[]> {
  // Run by the debugger: the page's own policy takes no script but its own.
  await page.evaluate(axe.source)
  const { violations: found } = await page.evaluate('axe.run(document, { resultTypes: ["violations"] })') as axe.AxeResults
  return found.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary ?? ''}`))
}

describe('the admin page has no fault that axe finds, and no more than the width of the screen', () => {
  after(closeBrowser)

  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [1440, 390]) {
      inBrowser(`${colorScheme}, ${width} px`, async (t) => {
        const { app, url } = await startShown(t, { upstreams: ['http://127.0.0.1:9', 'http://127.0.0.1:10', 'http://127.0.0.1:11', 'http://a-server-with-a-very-long-name.of-some-department.example:12345'] })
        app.breakers.find('shop', '127.0.0.1:9')?.force('open', 60000, 'a drill')
        app.pools.setDraining('shop', '127.0.0.1:10', true, { reason: 'a-reason-without-a-single-space-that-is-wider-than-a-phone' })
        const { page } = await open(url, { colorScheme, viewport: { width, height: 844 } }, /ERR_FAILED/)
        const detail = await openDetail(page, '127.0.0.1:9')
        await page.locator('#events li').first().waitFor()
        const fits = async (what: string) => assert.ok(Number(await page.evaluate('document.documentElement.scrollWidth')) <= width, `${what} is wider than ${width} px`)
        assert.deepEqual(await violations(page), [])
        await fits('the page')
        await detail.getByRole('button', { name: 'Reset breaker…' }).click()
        await page.getByRole('dialog').waitFor()
        assert.deepEqual(await violations(page), [])
        await fits('the dialog')
        await page.keyboard.press('Escape')
        // What is stale is to be read, too: it is all that is known.
        await page.route(/\/pools$/, (route) => route.abort())
        await page.locator('body.stale').waitFor()
        assert.deepEqual(await violations(page), [])
      })
    }
  }

  inBrowser('the form for the token', async (t) => {
    const { url } = await startShown(t, { upstreams: ['http://127.0.0.1:9'], token: 'secret' })
    const { page } = await open(url, { viewport: { width: 390, height: 844 } }, /401/)
    await page.getByRole('textbox', { name: 'Token' }).waitFor()
    assert.deepEqual(await violations(page), [])
  })
})
