import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { createSecureContext } from 'node:tls'
import type { Report } from './checks.ts'
import { fileFailure } from './file.ts'
import { keyPath } from './path.ts'
import { readRegularFile } from './regular-file.ts'
import { given } from './values.ts'

const read = (file: unknown, path: string, report: Report): Buffer | null => {
  if (typeof file !== 'string') return null
  try {
    return readRegularFile(file)
  } catch (error) {
    report(path, `must be a readable file, got ${given(file, path)}: ${fileFailure(error)}`)
    return null
  }
}

/** Never the error's own text, which may quote the file: only its code. */
const code = (error: unknown): string => error instanceof Error && 'code' in error ? String(error.code) : 'not understood'

const parseCertificate = (pem: Buffer): X509Certificate => new X509Certificate(pem)

/** Reads the files at start, where a person looks, and not at the first handshake. */
export const checkTls = (tls: Record<string, unknown>, path: string, report: Report): void => {
  const [ca, cert, key] = ['ca', 'cert', 'key'].map(name => read(tls[name], keyPath(path, name), report))
  if (tls['cert'] !== undefined && tls['key'] === undefined) report(keyPath(path, 'key'), 'is required with a cert')
  if (tls['key'] !== undefined && tls['cert'] === undefined) report(keyPath(path, 'cert'), 'is required with a key')
  if (ca) {
    try {
      parseCertificate(ca)
    } catch (error) {
      report(keyPath(path, 'ca'), `must hold a PEM certificate, got ${given(tls['ca'], path)} (${code(error)})`)
    }
  }
  if (cert && key) {
    try {
      createSecureContext({ cert, key })
    } catch (error) {
      report(keyPath(path, 'cert'), `must be a PEM certificate with its unencrypted key in ${keyPath(path, 'key')}, got ${given(tls['cert'], path)} (${code(error)})`)
    }
  }
  const servername = tls['servername']
  if (typeof servername !== 'string') return
  if (isIP(servername) !== 0 || !/^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?$/.test(servername)) {
    report(keyPath(path, 'servername'), `must be a host name, got ${given(servername, path)}`)
  }
}
