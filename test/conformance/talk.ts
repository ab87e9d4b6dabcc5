import assert from 'node:assert/strict'
import { rawConnect, rawRequest } from '../support/raw-client.ts'
import type { Recorder } from '../support/recorder.ts'

/** Ends what a client says, so that the connection ends by itself whatever came before. */
export const lastRequest = 'GET /end HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n'

/** Sends the pieces, each in a write of its own, and gives what came back until the server closed. @throws where it did not, within 10 s */
export async function talk (port: number, pieces: ReadonlyArray<string | Buffer>): Promise<Buffer> {
  const client = await rawConnect(port, { timeoutMs: 10_000 })
  try {
    for (const [index, piece] of pieces.entries()) {
      // So that the pieces do not meet in the system's buffer.
      if (index > 0) await new Promise((resolve) => { setTimeout(resolve, 1) })
      await client.write(piece)
    }
    return await client.readAll()
  } finally {
    client.destroy()
  }
}

/**
 * The next client, which gets its own answer: what an earlier one left behind would be in its way. The upstream has forgotten what came.
 * @throws where it does not
 */
export async function nextClient (port: number, upstream: Recorder): Promise<void> {
  upstream.clear()
  const ask = (): ReturnType<typeof rawRequest> => rawRequest(port, 'GET /victim HTTP/1.1\r\nHost: shop\r\n\r\n')
  let victim = await ask()
  // While this process stands still a short time for the head is over before the head is read: nothing is answered then, or 408.
  for (let tries = 1; tries < 5 && victim.ended !== 'timeout' && (victim.status === 0 || victim.status === 408) && upstream.requests.length === 0; tries++) victim = await ask()
  assert.deepEqual([victim.status, victim.text(), upstream.requests.map(({ target }) => target)], [200, '/victim', ['/victim']])
}

/** Does the work for each item, on as many lanes as were opened. */
export async function inLanes<Lane, Item> (lanes: readonly Lane[], items: readonly Item[], work: (lane: Lane, item: Item) => Promise<void>): Promise<void> {
  const waiting = [...items].toReversed()
  await Promise.all(lanes.map(async (lane) => {
    for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) await work(lane, item)
  }))
}
