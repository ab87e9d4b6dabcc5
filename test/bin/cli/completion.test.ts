/** Completions: scripts that their shells take, and what these complete with them. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { commands } from '../../../bin/cli/commands.ts'
import { completionFor } from '../../../bin/cli/completion.ts'
import { skipWithout } from '../../support/tools.ts'
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

/** Lines up to the cursor, and what is offered there. */
const lines: Array<[string, readonly string[]]> = [
  ['st', ['start', 'status']],
  ['', [...commands.map(({ name }) => name), 'help']],
  ['force shop a:1 ', ['open', 'closed', 'auto']],
  ['force --ttl 5m shop a:1 c', ['closed']],
  ['force shop ', []],
  ['force --re', ['--reason']],
  ['force --ttl ', []],
  ['drain force --y', []],
  ['completion ', ['bash', 'zsh', 'fish']],
  ['check gate', ['gateway.yaml']],
  ['status --token-file gate', ['gateway.yaml']],
  ['nothing ', []]
]

test('fish completes the same', (t) => {
  const program = lines.map(([line]) => `complete -C 'breakwater ${line}'; echo =`).join('\n')
  const { error, status, stdout, stderr } = spawnSync('fish', ['--no-config', '-c', `source ${script('fish')}\n${program}`], { encoding: 'utf8', cwd: folder, env: { ...process.env, HOME: folder } })
  if (error !== undefined) return skipWithout('fish', t)
  equal(status, 0, stderr)
  const answers = stdout.split('=\n').slice(0, -1).map((answer) => answer.split('\n').filter((line) => line !== '').map((line) => line.split('\t')[0]))
  deepEqual(answers.map((words, i) => [lines[i]?.[0], words.toSorted()]), lines.map(([line, words]) => [line, [...words].toSorted()]))
})

/**
 * A zsh that somebody types into: it tells what is added as a match, and when a completion is over. The tab is the last that is typed
 * until then, as zsh completes otherwise where more waits to be read.
 */
const typist = `
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PROMPT=; fpath=($1 \\$fpath); autoload -Uz compinit; compinit -u -d $1/.zcompdump"
zpty -w z 'compadd () { [[ " \${@[1,(i)(-|--)]} " == *\\ -[OAD]\\ * ]] && { builtin compadd "$@"; return }; local -a found; builtin compadd -A found "$@"; local each; for each in $found; print -r -- "<$each>"; builtin compadd "$@" }'
zpty -w z "completes () { zle complete-word; print -r -- do''ne }; zle -N completes; bindkey '^I' completes; print rea''dy"
zpty -r -m z out '*ready*'
shift
for line; do
  zpty -w -n z $'\x15'"$line"$'\t'
  zpty -r -m z out '*done*'
  print -r -- "$out="
done
zpty -d z
`

test('zsh completes the same', (t) => {
  writeFileSync(join(folder, '_breakwater'), completionFor('zsh', commands))
  const { error, status, stdout, stderr } = spawnSync('zsh', ['-f', '-c', typist, 'typist', folder, ...lines.map(([line]) => `breakwater ${line}`)], { encoding: 'utf8', cwd: folder, env: { ...process.env, HOME: folder }, timeout: 60000 })
  if (error !== undefined && (error as NodeJS.ErrnoException).code === 'ENOENT') return skipWithout('zsh', t)
  equal(status, 0, stderr)
  const answers = stdout.split('=\n').slice(0, -1).map((answer) => [...new Set([...answer.matchAll(/<([\w.-]+)>/g)].map(([, word]) => word))])
  deepEqual(answers.map((words, i) => [lines[i]?.[0], words.toSorted()]), lines.map(([line, words]) => [line, [...words].toSorted()]))
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
