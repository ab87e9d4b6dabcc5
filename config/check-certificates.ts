import { X509Certificate } from 'node:crypto'
import { certificateNames, serverName } from '../lib/tls-names.ts'
import { fieldNames } from './check-route-fields.ts'
import { readOrReport, reportAuthorities, reportPair } from './check-tls.ts'
import type { Report } from './checks.ts'
import { isOwnField } from './own-fields.ts'
import { indexPath, keyPath } from './path.ts'
import { given, listOf, objectOf } from './values.ts'

/** The names that a certificate is for, where they are known: those given, else its own. */
const namesOf = (names: unknown, cert: Buffer | null): string[] | null => {
  if (Array.isArray(names)) return names.filter(name => typeof name === 'string').map(name => serverName(name) ?? '')
  try {
    return cert === null ? null : certificateNames(new X509Certificate(cert).subjectAltName)
  } catch {
    return null
  }
}

const checkCertificate = (certificate: Record<string, unknown>, path: string, report: Report): string[] | null => {
  const [certPath, keysPath] = [keyPath(path, 'cert'), keyPath(path, 'key')]
  const cert = readOrReport(certificate['cert'], certPath, report)
  const key = readOrReport(certificate['key'], keysPath, report)
  if (cert !== null && key !== null) reportPair(cert, key, certPath, keysPath, certificate['cert'], report)
  for (const [index, name] of listOf(certificate['names']).entries()) {
    const namePath = indexPath(keyPath(path, 'names'), index)
    if (typeof name === 'string' && serverName(name) === null) report(namePath, `must be a host name, or "*." and one, got ${given(name, namePath)}`)
  }
  return namesOf(certificate['names'], cert)
}

/** Reads the files at start, where a person looks, and not at the first handshake. What has expired is told by who uses it. */
export const checkServerTls = (server: Record<string, unknown>, report: Report): void => {
  if (server['tls'] === undefined) return
  const tls = objectOf(server['tls'])
  const taken = new Map<string, string>()
  for (const [index, each] of listOf(tls['certificates']).entries()) {
    const path = indexPath('server.tls.certificates', index)
    const certificate = objectOf(each)
    const names = checkCertificate(certificate, path, report)
    if (names === null) continue
    if (index > 0 && names.length === 0) report(keyPath(path, 'names'), 'is required: the certificate itself has none, and only the first one is for clients without a name')
    if (index > 0 && names.length > 0 && names.every(name => taken.has(name))) report(path, `would never be used: ${taken.get(names[0] as string)} is for its names`)
    for (const name of names) if (!taken.has(name)) taken.set(name, path)
  }
  if (objectOf(server['http2'])['cleartext'] === true) report('server.http2.cleartext', 'must not be true with server.tls: then every connection is TLS')
  if (tls['clientCertificates'] !== undefined) checkClients(objectOf(tls['clientCertificates']), fieldNames(server).requestId, report)
}

const checkClients = ({ ca: file, header }: Record<string, unknown>, requestId: string, report: Report): void => {
  const caPath = 'server.tls.clientCertificates.ca'
  const ca = readOrReport(file, caPath, report)
  if (ca !== null) reportAuthorities(ca, caPath, file, report)
  if (typeof header !== 'string') return
  if (isOwnField(header) || header.toLowerCase() === requestId) report('server.tls.clientCertificates.header', `must be a header of its own, got ${given(header, '')}, which has a meaning already`)
}
