/** Elements. Whatever comes from the proxy is text and is set as text: nothing here reads markup. */

const svgNames = new Set(['svg', 'path', 'rect'])

/** An element. `props`: `on…` are listeners, `class` and the like attributes, the rest properties; what is null or false is left out. */
export function h (name, props = {}, ...children) {
  const element = svgNames.has(name) ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name)
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value)
    else element.setAttribute(key, value === true ? '' : value)
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false))
  return element
}

export const byId = (id) => document.getElementById(id)

/** Sets the text where it differs: what did not change is not told again, and a selection stays. */
export function setText (element, text) {
  const value = String(text)
  if (element.textContent !== value) element.textContent = value
}

/** Sets an attribute where it differs; null takes it away. */
export function setAttribute (element, name, value) {
  if (value === null || value === false) element.removeAttribute(name)
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value)
}

export const setHidden = (element, hidden) => { if (element.hidden !== hidden) element.hidden = hidden }

/** Makes the children of `parent` these, in this order, and moves as few as it can: what has the focus keeps it. */
export function setChildren (parent, children) {
  const wanted = new Set(children)
  for (const child of Array.from(parent.children)) if (!wanted.has(child)) child.remove()
  let next = parent.firstElementChild
  for (const child of children) {
    if (child === next) next = next.nextElementSibling
    else parent.insertBefore(child, next)
  }
}
