/** Completions: scripts that their shells take, and what bash completes with them. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { commands } from '../../../bin/cli/commands.ts'
import { completionFor } from '../../../bin/cli/completion.ts'
import { run } from './support.ts'

const folder = mkdtempSync(join(tmpdir(), 'breakwater-completion-'))
after(() => { rmSync(folder, { recursive: true }) })
writeFileSync(join(folder, 'gateway.yaml'), '')

const script = (shell: string): string => {
  const file = join(folder, `completion.${shell}`)
  writeFileSync(file, completionFor(shell, commands))
  return file
}

/** What bash would offer for a line whose last word is being typed. */
function offered (...words: string[]): string[] {
  const program = `source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _breakwater; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { status, stdout, stderr } = spawnSync('bash', ['--norc', '-c', program, script('bash'), 'breakwater', ...words], { encoding: 'utf8', cwd: folder })
  equal(status, 0, stderr)
  equal(stderr, '')
  return stdout.split('\n').filter((line) => line !== '')
}

test('the scripts are what bash, zsh and fish can read', () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { error, status, stderr } = spawnSync(shell, ['-n', script(shell)], { encoding: 'utf8' })
    if (error !== undefined && shell !== 'bash') continue
    equal(status, 0, `${shell}: ${stderr}`)
  }
})

test('bash completes commands, options, values that are a choice, and files', () => {
  deepEqual(offered('st'), ['start', 'status'])
  deepEqual(offered(''), [...commands.map(({ name }) => name), 'help'])
  deepEqual(offered('force', 'shop', 'a:1', ''), ['open', 'closed', 'auto'])
  deepEqual(offered('force', '--ttl', '5m', 'shop', 'a:1', 'c'), ['closed'])
  deepEqual(offered('force', 'shop', ''), [])
  deepEqual(offered('force', '--re'), ['--reason'])
  deepEqual(offered('force', '--ttl', ''), [])
  deepEqual(offered('completion', ''), ['bash', 'zsh', 'fish'])
  deepEqual(offered('check', 'gate'), ['gateway.yaml'])
  deepEqual(offered('status', '--token-file', 'gate'), ['gateway.yaml'])
  deepEqual(offered('nothing', ''), [])
})

test('every option of every command is in every script', () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const text = completionFor(shell, commands)
    for (const { options } of commands) for (const name of Object.keys(options)) ok(text.includes(shell === 'fish' ? `-l ${name}` : `--${name}`), `${shell} ${name}`)
  }
})

test('breakwater completion prints them, and names the shells that it knows', async () => {
  const { code, out } = await run(['completion', 'fish'])
  equal(code, 0)
  equal(`${out.join('\n')}\n`, completionFor('fish', commands))
  const { code: wrong, errors } = await run(['completion', 'zhs'])
  equal(wrong, 2)
  equal(errors[0], 'breakwater completion: SHELL must be bash, zsh, fish, not "zhs"; did you mean zsh?')
})
