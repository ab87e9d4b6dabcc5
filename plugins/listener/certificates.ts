import { createHash, randomBytes, X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'
import { readRegularFile } from '../../config/regular-file.ts'
import type { ServerTlsOptions } from '../../config/schema-server.ts'
import { certificateNames, NameTable } from '../../lib/tls-names.ts'

/** A certificate in use, for people. */
export interface CertificateView {
  /** File that it was read from. */
  readonly file: string
  /** Names that it is chosen by. The first certificate is also for clients that ask for no name, or for one that nobody has. */
  readonly names: readonly string[]
  readonly subject: string
  readonly issuer: string
  /** ISO 8601. */
  readonly notBefore: string
  readonly notAfter: string
  /** SHA-256 of the certificate, in hexadecimal with colons. */
  readonly fingerprint: string
}

/** All certificates, read at one time. */
export interface LoadedCertificates {
  /** Of the first certificate. */
  readonly fallback: SecureContextOptions
  readonly byName: NameTable<SecureContext>
  readonly views: readonly CertificateView[]
  /** The same text for the same contents of all files. */
  readonly contents: string
}

/** The same for all certificates: the session of one name is resumed by the context of another, and only where their ids are equal. */
const sessionIdContext = 'breakwater'
const ticketKeyBytes = 48

/**
 * Reads all files. Sessions that were made with certificates that were read before are not resumed: whoever was let in by them is
 * asked again.
 * @throws what reading and understanding them throws
 */
export function loadCertificates ({ certificates, minVersion, clientCertificates }: ServerTlsOptions): LoadedCertificates {
  const hash = createHash('sha256')
  const read = (file: string): Buffer => {
    const bytes = readRegularFile(file)
    hash.update(`${bytes.length} `).update(bytes)
    return bytes
  }
  const shared: SecureContextOptions = {
    minVersion,
    sessionIdContext,
    // Node decrypts a ticket before it knows the name, with the keys of the first certificate.
    ticketKeys: randomBytes(ticketKeyBytes),
    honorCipherOrder: true,
    ...clientCertificates !== undefined && { ca: read(clientCertificates.ca) }
  }
  const byName = new NameTable<SecureContext>()
  const views: CertificateView[] = []
  let fallback: SecureContextOptions | null = null
  for (const { cert: file, key, names: given } of certificates) {
    const cert = read(file)
    const options = { ...shared, cert, key: read(key) }
    const context = contextOf(options, file, key)
    const x509 = new X509Certificate(cert)
    const names = given ?? certificateNames(x509.subjectAltName)
    byName.add(names, context)
    views.push(viewOf(x509, file, names))
    fallback ??= options
  }
  return { fallback: fallback as SecureContextOptions, byName, views: Object.freeze(views), contents: hash.digest('hex') }
}

/** What OpenSSL says names no file, and there may be many. */
function contextOf (options: SecureContextOptions, file: string, key: string): SecureContext {
  try {
    return createSecureContext(options)
  } catch (cause) {
    throw new Error(`${file} with the key ${key}: ${(cause as Error).message}`, { cause })
  }
}

function viewOf (x509: X509Certificate, file: string, names: readonly string[]): CertificateView {
  return Object.freeze({
    file,
    names: Object.freeze([...names]),
    subject: oneLine(x509.subject),
    issuer: oneLine(x509.issuer),
    notBefore: new Date(x509.validFrom).toISOString(),
    notAfter: new Date(x509.validTo).toISOString(),
    fingerprint: x509.fingerprint256
  })
}

/** Node writes a part of a name on each line. */
const oneLine = (name: string | undefined): string => (name ?? '').split('\n').join(', ')
