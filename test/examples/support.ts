import { once } from 'node:events'
import { request } from 'node:http'
import type { TestContext } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { startUpstream, type ScriptedUpstream } from '../../bin/scripted-upstream.ts'
import type { UpstreamOptions } from '../../bin/upstream-options.ts'

/** A scripted upstream on a free port, closed at the end of the test. */
export async function upstream (t: TestContext, options: UpstreamOptions = {}): Promise<ScriptedUpstream> {
  const started = await startUpstream(options)
  t.after(() => started.close())
  return started
}

/** Opens the app on a free port and closes it at the end of the test; gives its URL, without a slash at its end. */
export async function listen (t: TestContext, app: FastifyInstance): Promise<string> {
  t.after(() => app.close().catch(() => undefined))
  return app.listen({ port: 0, host: '127.0.0.1' })
}

export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
  json: () => any
}

/** One request on a connection of its own. */
export async function ask (url: string, { method = 'GET', headers = {}, body }: { method?: string, headers?: Record<string, string>, body?: string } = {}): Promise<Answer> {
  const sent = request(url, { method, headers, agent: false })
  sent.end(body)
  const [response] = await once(sent, 'response')
  let text = ''
  response.setEncoding('utf8')
  for await (const chunk of response) text += chunk
  return { status: response.statusCode, headers: response.headers, text, json: () => JSON.parse(text) }
}

/** A POST with a JSON body. */
export const post = (url: string, value: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  ask(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(value) })
