import { spawn } from 'node:child_process'

export interface Ran {
  code: number | null
  output: string
  errors: string
}

/** Runs a program to its end. @throws where it takes longer than so many ms, or is not there */
export function run (program: string, args: readonly string[], { timeoutMs = 60_000, input }: { timeoutMs?: number, input?: Buffer } = {}): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] })
    const output: Buffer[] = []
    const errors: Buffer[] = []
    child.stdout.on('data', (bytes: Buffer) => { output.push(bytes) })
    child.stderr.on('data', (bytes: Buffer) => { errors.push(bytes) })
    // It may end before it has read all.
    child.stdin.on('error', () => {}).end(input)
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      reject(new Error(`${program} took longer than ${timeoutMs} ms: ${Buffer.concat(errors).toString().slice(-500)}`))
    }, timeoutMs)
    child.once('error', (error) => { clearTimeout(timer); reject(error) })
    child.once('close', (code) => {
      clearTimeout(timer)
      resolve({ code, output: Buffer.concat(output).toString('latin1'), errors: Buffer.concat(errors).toString() })
    })
  })
}
