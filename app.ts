/**
 * The entry for fastify-cli: `fastify start -o -l info dist/app.js`. Configuration comes from the environment and the file that it
 * names; where it is wrong, everything that is wrong is printed and the exit code is 2.
 */
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { startDemoUpstreams } from './bin/demo.ts'
import breakwater from './breakwater.ts'
import { ConfigError, formatConfigError } from './config/error.ts'
import { loadConfig, type Loaded } from './config/load.ts'
import { parseConfig } from './config/parse.ts'
import type { Config } from './config/schema.ts'
import { serverOptions } from './server.ts'

function loadOrExit (): Loaded {
  try {
    return loadConfig()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stderr.write(`${formatConfigError(error)}\n`)
    process.exit(2)
  }
}

const loaded = loadOrExit()

/** Read by fastify-cli with -o: the limits of the listener, the request ids and the log. */
export const options = serverOptions(loaded.config)

/** Without any upstream configured, a newcomer gets three of our own, one of which keeps going bad. */
async function withDemo (instance: FastifyInstance): Promise<Config> {
  const demo = await startDemoUpstreams()
  instance.addHook('onClose', () => demo.close())
  instance.log.warn({ upstreams: demo.urls }, 'no upstreams are configured: serving the embedded demo')
  return parseConfig({ ...loaded.config, pools: { demo: { upstreams: demo.urls.map((url) => ({ url })) } }, routes: [] }, 'the demo')
}

// fastify-cli insists on exactly two parameters.
async function app (instance: FastifyInstance, _options: object): Promise<void> {
  const config = loaded.source === 'demo' ? await withDemo(instance) : loaded.config
  await instance.register(breakwater, config)
}

export default fp(app, { name: 'breakwater-app', fastify: '5.x' })
