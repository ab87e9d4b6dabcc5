import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { oneLine } from '../../../lib/one-line.ts'
import { textOf } from '../../../lib/record/text.ts'
import type { RequestRecord } from '../../../plugins/flight-recorder.ts'
import { rawUpstream, stall, type RawHandler, type RawUpstream } from '../../support/faulty-upstream.ts'
import { startGateway, type Gateway, type GatewayOptions } from '../../support/gateway.ts'
import type { RawResponse } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'

export interface Scene {
  readonly gateway: Gateway
  readonly upstream: RawUpstream
}

/** Never answers, but to /ok. */
export const holding: RawHandler = (socket) => stall(socket)

export async function scene (t: Pick<TestContext, 'after'>, handler: RawHandler, options: GatewayOptions = {}): Promise<Scene> {
  const upstream = await rawUpstream(handler)
  t.after(() => upstream.close())
  return { upstream, gateway: await startGateway(t, { upstreams: [upstream.url], ...options }) }
}

/** The record that an answer's request id leads to. */
export async function recordOf ({ app }: Pick<Gateway, 'app'>, answer: Pick<RawResponse, 'header' | 'json'>): Promise<RequestRecord> {
  const id = answer.header('x-request-id') ?? (answer.json() as { requestId: string }).requestId
  return recordNamed({ app }, id)
}

export async function recordNamed ({ app }: Pick<Gateway, 'app'>, id: string): Promise<RequestRecord> {
  const record = await until(() => app.recorder.find(id), { what: `a record of ${id}` })
  // What is shown as text has the same explanation, whatever else there is to show.
  assert.ok(textOf(record).replaceAll('\n', ' ').includes(oneLine(record.explanation)))
  return record
}

/** The only record of this reason. */
export async function recordFor ({ app }: Pick<Gateway, 'app'>, reason: NonNullable<RequestRecord['reason']>): Promise<RequestRecord> {
  const [record] = await until(() => {
    const found = app.recorder.list({ reason })
    return found.length > 0 ? found : null
  }, { what: `a record of ${reason}` })
  return record as RequestRecord
}
