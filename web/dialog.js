/** A dialog that says what will happen, asks, does it and shows what came of it. The browser keeps the focus in it; Esc leaves. */
import { h, setHidden, setText } from './dom.js'

let dialogs = 0

const preset = [[60000, '1 minute'], [300000, '5 minutes'], [900000, '15 minutes'], [3600000, '1 hour'], [28800000, '8 hours']]

/** For how long, in ms; 0: until it is ended. */
export function durationField (endless = null) {
  const select = h('select', {}, endless === null ? null : h('option', { value: '0' }, endless), preset.map(([ms, name]) => h('option', { value: ms }, name)))
  select.value = '300000'
  return { element: h('label', {}, 'For ', select), value: () => Number(select.value) }
}

/** Why; it goes into the journal. */
export function reasonField () {
  const input = h('input', { type: 'text', required: true, maxlength: 256, autocomplete: 'off', placeholder: 'for the journal' })
  return { element: h('label', { class: 'wide' }, 'Reason ', input), value: () => input.value.trim() }
}

/**
 * @param title what it is about
 * @param what sentences: what will happen
 * @param body an element with more, or null
 * @param fields of the functions above
 * @param confirm the label of the button that does it
 * @param run does it, and gives the sentence of what came of it
 */
export function ask ({ title, what, body = null, fields = [], confirm, run }) {
  const id = `dialog-${++dialogs}`
  const text = h('div', { id: `${id}-what` }, what.map((sentence) => h('p', {}, sentence)))
  const result = h('p', { class: 'result', role: 'status' })
  const doIt = h('button', { type: 'submit', class: 'main' }, confirm)
  const cancel = h('button', { type: 'button', onclick: () => { dialog.close() } }, 'Cancel')
  const questions = h('div', { class: 'fields' }, fields.map(({ element }) => element))
  const form = h('form', {}, h('h2', { id }, title), text, body, questions, result, h('div', { class: 'buttons' }, cancel, doIt))
  const dialog = h('dialog', { 'aria-labelledby': id, 'aria-describedby': `${id}-what` }, form)
  const opener = document.activeElement

  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    doIt.disabled = true
    setText(result, 'Asking the proxy')
    result.className = 'result'
    try {
      setText(result, await run(...fields.map(({ value }) => value())))
      setHidden(questions, true)
      setHidden(doIt, true)
      setText(cancel, 'Close')
      cancel.focus()
    } catch (error) {
      result.className = 'result bad'
      setText(result, `Not done. ${error.message}`)
      doIt.disabled = false
    }
  })
  dialog.addEventListener('close', () => {
    dialog.remove()
    if (opener?.isConnected) opener.focus()
  })
  document.body.append(dialog)
  dialog.showModal()
  return { allow (allowed) { doIt.disabled = !allowed } }
}
