/** Asks for the admin token. */
import { byId, setHidden, setText } from './dom.js'
import { forgetToken, hasToken, keepToken } from './api.js'

/** @param onToken called once there is one to try */
export function tokenForm (onToken) {
  const form = byId('token')
  const value = byId('token-value')
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    keepToken(value.value)
    value.value = ''
    setHidden(form, true)
    onToken()
  })
  return {
    show () {
      setText(byId('token-why'), hasToken() ? 'The proxy did not take this token.' : 'This proxy shows itself to those who have its admin token.')
      forgetToken()
      setHidden(byId('main'), true)
      setHidden(form, false)
      value.focus()
    }
  }
}
