/** Which options hold secrets: their values are never shown, neither in an error nor by the admin routes. */

/** A key as config/path.ts writes it. */
const key = String.raw`(?:\.[\w-]+|\["(?:[^"\\]|\\.)*"\])`
const secretOptions = new RegExp(String.raw`^(?:admin\.token|pools${key}\.sticky\.secret|events\.webhook\.url|events\.webhook\.headers${key})$`)
/** Options of routes that are named by whoever writes them: fields that are set, and what a request must have. */
const namedOptions = new RegExp(String.raw`^routes\[\d+\]\.(?:requestHeaders\.set|responseHeaders\.set|headers|query)(${key})$`)

/** True for the name of a header field or query parameter that is likely to carry a secret. */
export const isSecretName = (name: string): boolean =>
  /authori[sz]ation|cookie|token|secret|passw|credential|api[-_]?key|session|(?:^|[-_])auth(?:$|[-_])/i.test(name)

/** True for the path of an option whose value is a secret, like `admin.token` or `routes[0].requestHeaders.set.authorization`. */
export const isSecret = (path: string): boolean => {
  if (secretOptions.test(path)) return true
  const name = namedOptions.exec(path)?.[1]
  return name !== undefined && isSecretName(name)
}
