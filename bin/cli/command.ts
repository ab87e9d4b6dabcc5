/** An option of a command. Without `value` it is a flag. */
export interface Option {
  short?: string
  /** What its value is called in the help. */
  value?: string
  /** The only values that it takes. */
  choices?: readonly string[]
  /** What its value is, for completion. */
  complete?: 'files'
  /** It may stand more than once. */
  repeat?: boolean
  text: string
}

/** An argument that is known by its place. */
export interface Operand {
  name: string
  choices?: readonly string[]
  complete?: 'files'
}

/** What was given: operands in their order; a flag is `true`, all other options texts. */
export interface Given {
  operands: readonly string[]
  flag: (name: string) => boolean
  text: (name: string) => string | undefined
  list: (name: string) => readonly string[]
}

/** Where a command reads and writes. */
export interface Surroundings {
  env: Readonly<Record<string, string | undefined>>
  /** Writes lines to standard output. */
  out: (...lines: string[]) => void
  /** Writes lines to standard error. */
  complain: (...lines: string[]) => void
}

/** That of a command that talks to people. */
export interface Terminal extends Surroundings {
  /** Standard output is a terminal. */
  tty: boolean
  colors: boolean
  /** Milliseconds since 1970. */
  now: () => number
  /** Aborted by Ctrl-C and SIGTERM. */
  stopped: AbortSignal
  /** Asks the person at the terminal; null where nobody is. */
  ask: (question: string) => Promise<string> | null
}

/** One command: the help, the parser and the completions are made of this. */
export interface Command {
  name: string
  summary: string
  operands: readonly Operand[]
  options: Readonly<Record<string, Option>>
  /** More of the help, as it is printed. */
  notes?: string
  run: (given: Given, terminal: Terminal) => Promise<number>
}

/** A command that takes its own arguments apart; what is said of it is for the list and the completions. */
export interface OwnCommand extends Omit<Command, 'run'> {
  /** null: it goes on running, and ends the process itself. */
  runArguments: (argv: string[]) => Promise<number | null>
}

/** The arguments are wrong: exit code 2. */
export class UsageError extends Error {}

export const exitCodes = `Exit codes: 0 done; 1 the proxy says no, or does not have it; 2 wrong arguments; 3 the proxy cannot be reached,
or does not allow it.`

/** The options of every command that asks a running proxy. */
export const adminOptions = {
  'admin': { value: 'URL', text: 'where its admin routes are (BREAKWATER_ADMIN_URL; http://127.0.0.1:9090)' },
  'token-file': { value: 'FILE', complete: 'files', text: 'file that holds the admin token (or the variable BREAKWATER_ADMIN_TOKEN)' }
} as const satisfies Record<string, Option>

export const jsonOption = { json: { text: 'JSON in place of text' } } as const satisfies Record<string, Option>
