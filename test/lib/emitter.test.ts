import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Emitter } from '../../lib/emitter.ts'

function make (): { emitter: Emitter<number>, errors: unknown[] } {
  const errors: unknown[] = []
  return { emitter: new Emitter<number>((error) => { errors.push(error) }), errors }
}

test('an event that a listener emits waits until all have had the one before', () => {
  const { emitter } = make()
  const heard: string[] = []
  emitter.on((event) => {
    heard.push(`a${event}`)
    if (event < 3) emitter.emit(event + 1)
  })
  emitter.on((event) => { heard.push(`b${event}`) })
  emitter.emit(1)
  assert.deepEqual(heard, ['a1', 'b1', 'a2', 'b2', 'a3', 'b3'])
})

test('a listener that throws, at once or later, is reported and harms nobody', async () => {
  const { emitter, errors } = make()
  const heard: number[] = []
  emitter.on(() => { throw new Error('at once') })
  emitter.on(async () => { throw new Error('later') })
  emitter.on((event) => { heard.push(event) })
  emitter.emit(1)
  emitter.emit(2)
  await Promise.resolve()
  assert.deepEqual(heard, [1, 2])
  assert.deepEqual(errors.map((error) => (error as Error).message).toSorted(), ['at once', 'at once', 'later', 'later'])
})

test('a report that throws loses the listener nothing of what is emitted next', () => {
  const heard: number[] = []
  const emitter = new Emitter<number>(() => { throw new Error('no log') })
  const leave = emitter.on(() => { throw new Error('x') })
  emitter.on((event) => { heard.push(event) })
  assert.throws(() => { emitter.emit(1) }, /no log/)
  leave()
  emitter.emit(2)
  assert.deepEqual(heard, [2])
})

test('who begins during an event hears the next one, who leaves hears no more, and one function may listen twice', () => {
  const { emitter } = make()
  const heard: string[] = []
  const late = (event: number): void => { heard.push(`late${event}`) }
  let leave = (): void => {}
  emitter.on((event) => {
    if (event !== 1) return
    leave()
    emitter.on(late)
    emitter.on(late)
  })
  leave = emitter.on((event) => { heard.push(`gone${event}`) })
  emitter.emit(1)
  emitter.emit(2)
  emitter.off(late)
  emitter.emit(3)
  assert.deepEqual(heard, ['late2', 'late2'])
  emitter.on(late)
  emitter.clear()
  emitter.emit(4)
  assert.deepEqual(heard, ['late2', 'late2'])
})
