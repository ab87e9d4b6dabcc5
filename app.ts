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
import { manyLines } from './lib/one-line.ts'
import { serverOptions } from './server.ts'

function loadOrExit (): Loaded {
  try {
    return loadConfig()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stderr.write(`${manyLines(formatConfigError(error))}\n`)
    process.exit(2)
  }
}

const loaded = loadOrExit()

/** Read by fastify-cli with -o: the limits of the listener, the request ids and the log. */
export const options = serverOptions(loaded.config)

/** Without any upstream configured, a newcomer gets three of our own, one of which keeps going bad. */
async function startDemo (instance: FastifyInstance): Promise<string[]> {
  const demo = await startDemoUpstreams()
  instance.addHook('onClose', () => demo.close())
  instance.log.warn({ upstreams: demo.urls }, 'no upstreams are configured: serving the embedded demo')
  return demo.urls
}

function completed ({ config, source }: Loaded, demo: readonly string[]): Config {
  return source === 'demo' ? parseConfig({ ...config, pools: { demo: { upstreams: demo.map((url) => ({ url })) } }, routes: [] }, 'the demo') : config
}

/** Until now fastify-cli has taken a SIGHUP for the end, as it takes every signal. */
function reloadOnHangUp (instance: FastifyInstance): void {
  const reload = (): void => { void instance.configuration.reload('signal') }
  instance.addHook('onListen', () => {
    process.removeAllListeners('SIGHUP')
    process.on('SIGHUP', reload)
  })
  instance.addHook('onClose', async () => { process.off('SIGHUP', reload) })
}

// fastify-cli insists on exactly two parameters.
async function app (instance: FastifyInstance, _options: object): Promise<void> {
  const demo = loaded.source === 'demo' ? await startDemo(instance) : []
  await instance.register(breakwater, completed(loaded, demo))
  instance.configuration.follow({ load: () => completed(loadConfig(), demo), file: loaded.file })
  reloadOnHangUp(instance)
}

export default fp(app, { name: 'breakwater-app', fastify: '5.x' })
