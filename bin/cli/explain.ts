import { jsonLine, manyLines } from '../../lib/one-line.ts'
import { AdminFailure, adminOf, ask } from '../admin-client.ts'
import { adminOptions, exitCodes, jsonOption, type Command } from './command.ts'

/** `breakwater explain REQUEST_ID`. */
export const explainCommand: Command = {
  name: 'explain',
  summary: 'tell why a request ended as it did; its id is in the answer, in x-request-id and in the problem document',
  operands: [{ name: 'REQUEST_ID' }],
  options: { ...jsonOption, ...adminOptions },
  notes: exitCodes,
  async run (given, terminal) {
    const json = given.flag('json')
    const [id = ''] = given.operands
    const { text, content } = await ask(adminOf(given, terminal.env), `requests/${encodeURIComponent(id)}`, { accept: json ? 'application/json' : 'text/plain', signal: terminal.stopped })
    if (json && content === null) throw new AdminFailure(3, 'the answer is no JSON, which no admin route does')
    terminal.out(json ? jsonLine(content) : manyLines(text).trimEnd())
    return 0
  }
}
