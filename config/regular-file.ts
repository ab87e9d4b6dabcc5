import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'

/** Far above any real configuration, and any bundle of certificates. */
export const maxFileBytes = 1048576

const refusal = (code: string, message: string): Error => Object.assign(new Error(`${code}: ${message}`), { code })

/**
 * Reads a regular file, also one behind a symlink, in one go. Anything else could have no end, or keep the whole process waiting for
 * a writer that never comes: it is not even waited for to open.
 * @throws what opening and reading throw; an error with code EISDIR for a directory, EINVAL for what is no regular file, EFBIG for more bytes than that
 */
export const readRegularFile = (file: string, maxBytes: number = maxFileBytes): Buffer => {
  const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  try {
    const stat = fstatSync(fd)
    if (stat.isDirectory()) throw refusal('EISDIR', 'a directory')
    if (!stat.isFile()) throw refusal('EINVAL', 'not a regular file')
    if (stat.size > maxBytes) throw refusal('EFBIG', `more than ${maxBytes} bytes`)
    // Files of /proc tell no size, and others may grow meanwhile: what counts is what is read.
    const bytes = Buffer.allocUnsafe(maxBytes + 1)
    let length = 0
    for (let read = -1; read !== 0 && length < bytes.length; length += read) read = readSync(fd, bytes, length, bytes.length - length, null)
    if (length > maxBytes) throw refusal('EFBIG', `more than ${maxBytes} bytes`)
    return bytes.subarray(0, length)
  } finally {
    closeSync(fd)
  }
}
