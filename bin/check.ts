import { ConfigError, formatConfigError } from '../config/error.ts'
import { loadConfig } from '../config/load.ts'

/** `breakwater check FILE`. 0: valid; 2: not valid, or no file named. */
export async function checkCommand (argv: string[]): Promise<number> {
  const [file, ...rest] = argv
  if (file === undefined || rest.length > 0 || file.startsWith('-')) {
    process.stderr.write('usage: breakwater check FILE\n')
    return 2
  }
  try {
    const { config } = loadConfig(process.env, { file })
    process.stdout.write(`${file} is valid: ${counted(Object.keys(config.pools).length, 'pool')}, ${counted(config.routes.length, 'route')}\n`)
    return 0
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stderr.write(`${formatConfigError(error)}\n`)
    return 2
  }
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
