import { differential } from './differential/suite.ts'
import { downgrade } from './smuggling/downgrade.ts'
import { smuggling } from './smuggling/suite.ts'
import type { Suite } from './suite.ts'
import { browser } from './tools/browser.ts'
import { curl } from './tools/curl.ts'
import { h2load } from './tools/h2load.ts'
import { h2spec } from './tools/h2spec.ts'
import { slow } from './tools/slow.ts'
import { varnishtest } from './varnishtest/suite.ts'
import { websocket } from './websocket/suite.ts'

/** Those that `npm test` runs, too, come first. */
export const suites: readonly Suite[] = [smuggling, downgrade, differential, websocket, curl, varnishtest, slow, browser, h2spec, h2load]
