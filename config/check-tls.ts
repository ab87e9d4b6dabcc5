import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { createSecureContext } from 'node:tls'
import type { Report } from './checks.ts'
import { fileFailure } from './file.ts'
import { keyPath } from './path.ts'
import { readRegularFile } from './regular-file.ts'
import { given } from './values.ts'

/** The contents of a file that an option names; null: it names none, or one that cannot be read, which is reported. */
export const readOrReport = (file: unknown, path: string, report: Report): Buffer | null => {
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

const parseCertificate = (pem: Buffer | string): X509Certificate => new X509Certificate(pem)
const blocks = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/** Certificates of authorities: whatever is not understood would silently be no authority. */
export const reportAuthorities = (pem: Buffer, path: string, file: unknown, report: Report): void => {
  try {
    for (const block of pem.toString('latin1').match(blocks) ?? [pem]) parseCertificate(block)
  } catch (error) {
    report(path, `must hold a PEM certificate, got ${given(file, path)} (${code(error)})`)
  }
}

export const reportPair = (cert: Buffer, key: Buffer, certPath: string, keysPath: string, file: unknown, report: Report): void => {
  try {
    createSecureContext({ cert, key })
  } catch (error) {
    report(certPath, `must be a PEM certificate with its unencrypted key in ${keysPath}, got ${given(file, certPath)} (${code(error)})`)
  }
}

/** Reads the files at start, where a person looks, and not at the first handshake. */
export const checkTls = (tls: Record<string, unknown>, path: string, report: Report): void => {
  const [ca, cert, key] = ['ca', 'cert', 'key'].map(name => readOrReport(tls[name], keyPath(path, name), report))
  if (tls['cert'] !== undefined && tls['key'] === undefined) report(keyPath(path, 'key'), 'is required with a cert')
  if (tls['key'] !== undefined && tls['cert'] === undefined) report(keyPath(path, 'cert'), 'is required with a key')
  if (ca) reportAuthorities(ca, keyPath(path, 'ca'), tls['ca'], report)
  if (cert && key) reportPair(cert, key, keyPath(path, 'cert'), keyPath(path, 'key'), tls['cert'], report)
  const servername = tls['servername']
  if (typeof servername !== 'string') return
  if (isIP(servername) !== 0 || !/^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?$/.test(servername)) {
    report(keyPath(path, 'servername'), `must be a host name, got ${given(servername, path)}`)
  }
}
