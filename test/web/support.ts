import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { it, type TestContext } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import { redactConfig } from '../../config/redact.ts'
import adminListener from '../../plugins/admin-listener.ts'
import adminRoutes from '../../routes/admin/index.ts'
import { startGateway, type Gateway, type GatewayOptions } from '../support/gateway.ts'
import { skipWithout } from '../support/tools.ts'

export const chromiumPath = (): string | null => ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) => existsSync(path)) ?? null

const executablePath = chromiumPath()

/** Ends the pages of the test that runs and gives their faults: before the proxy is closed, which they would see. */
let ends: Array<() => Promise<string[]>> = []

/** A test that is skipped where there is no browser, but for CI. Its pages must have had no fault. */
export function inBrowser (name: string, run: (t: TestContext) => Promise<void>): void {
  it(name, async (t) => {
    if (executablePath === null) return skipWithout('chromium', t)
    const faults: string[] = []
    try {
      await run(t)
    } finally {
      for (const end of ends) faults.push(...await end())
      ends = []
    }
    assert.deepEqual(faults, [])
  })
}

let shared: Promise<Browser> | undefined

/** The one browser of a test file; to be closed behind its last test. */
function browser (): Promise<Browser> {
  assert.ok(executablePath !== null)
  return shared ??= chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
}

export const closeBrowser = async (): Promise<void> => { await (await shared)?.close() }

export interface Shown {
  readonly page: Page
  /** What the page asked for, all of it. */
  readonly urls: string[]
}

/**
 * A page of its own. Faults are errors of the console and of scripts, and what the policy refused, but for those that are expected.
 */
export async function open (url: string, options: BrowserContextOptions = {}, expected = /^never$/): Promise<Shown> {
  const context = await (await browser()).newContext({ viewport: { width: 1440, height: 900 }, ...options })
  const page = await context.newPage()
  const urls: string[] = []
  const faults: string[] = []
  page.setDefaultTimeout(30000)
  page.on('request', (request) => { urls.push(request.url()) })
  page.on('console', (message) => { if (message.type() === 'error' || message.type() === 'warning') faults.push(`${message.text()} ${message.location().url}`) })
  page.on('pageerror', (error) => { faults.push(String(error.stack)) })
  await page.goto(url)
  ends.push(async () => {
    await context.close()
    return faults.filter((fault) => !expected.test(fault))
  })
  return { page, urls }
}

export interface ShownGateway extends Gateway {
  /** Of the page. */
  readonly url: string
}

/** A gateway with an admin listener. */
export async function startShown (t: Pick<TestContext, 'after'>, { token = '', port = 0, ...options }: GatewayOptions & { token?: string, port?: number } = {}): Promise<ShownGateway> {
  const gateway = await startGateway(t, {
    ...options,
    extend: async (app) => {
      await options.extend?.(app)
      await app.register(adminListener, {
        port,
        token,
        routes: (listener, { loopbackOnly }) => listener.register(adminRoutes, { source: app, token, loopbackOnly, config: () => redactConfig(app.configuration.current) })
      })
    }
  })
  return { ...gateway, url: urlOf(gateway.app) }
}

export const urlOf = (app: FastifyInstance): string => `http://127.0.0.1:${app.adminAddress?.port}/`

/** The row of an upstream, once it is there. */
export const rowOf = (page: Page, upstream: string) => page.locator('.pool tbody tr:not(.detail)').filter({ has: page.locator('th', { hasText: upstream }) })

/** Opens the detail of an upstream and gives it. */
export async function openDetail (page: Page, upstream: string) {
  await page.getByRole('button', { name: upstream, exact: true }).click()
  const detail = rowOf(page, upstream).locator('xpath=following-sibling::tr[1]')
  await detail.waitFor()
  return detail
}
