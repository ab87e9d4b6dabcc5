import { createPrivateKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto'

/** A certificate and its key, PEM. */
export interface Pair {
  cert: string
  key: string
}

export interface CertificateOptions {
  /** CN of the subject. */
  name: string
  /** DNS names of its subjectAltName; none by default. */
  names?: string[]
  /** Who signs it, and the CN of that one; by default it signs itself. */
  by?: { pair: Pair, name: string }
  /** An authority, which may sign others. false */
  authority?: boolean
  /** As in 99991231235959Z, which is the default. */
  notAfter?: string
}

/** One value in DER: tag, length, content. */
const der = (tag: number, ...content: Buffer[]): Buffer => {
  const body = Buffer.concat(content)
  const length = body.length < 128 ? [body.length] : [0x82, body.length >> 8, body.length & 255]
  return Buffer.concat([Buffer.from([tag, ...length]), body])
}

const sequence = (...content: Buffer[]) => der(0x30, ...content)
const objectId = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))
const time = (text: string) => der(0x18, Buffer.from(text))
const commonName = (name: string) => sequence(der(0x31, sequence(objectId('550403'), der(0x0c, Buffer.from(name)))))
const extension = (id: string, value: Buffer) => sequence(objectId(id), der(0x04, value))
const pem = (label: string, bytes: Buffer) => `-----BEGIN ${label}-----\n${bytes.toString('base64').match(/.{1,64}/g)?.join('\n')}\n-----END ${label}-----\n`

/** A new key (Ed25519) with a certificate, so that no key lies in the repository and none expires. */
export const certificate = ({ name, names = [], by, authority = false, notAfter = '99991231235959Z' }: CertificateOptions): Pair => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const algorithm = sequence(objectId('2b6570'))
  const subject = commonName(name)
  const version = der(0xa0, der(0x02, Buffer.from([2])))
  const serial = der(0x02, Buffer.from([1]), randomBytes(7))
  const validity = sequence(time('20200101000000Z'), time(notAfter))
  const extensions = [
    ...names.length === 0 ? [] : [extension('551d11', sequence(...names.map(each => der(0x82, Buffer.from(each)))))],
    ...authority ? [extension('551d13', sequence(der(0x01, Buffer.from([255]))))] : []
  ]
  const content = sequence(
    version, serial, algorithm, by === undefined ? subject : commonName(by.name), validity, subject, publicKey.export({ type: 'spki', format: 'der' }),
    ...extensions.length === 0 ? [] : [der(0xa3, sequence(...extensions))]
  )
  const signature = der(0x03, Buffer.from([0]), sign(null, content, by === undefined ? privateKey : createPrivateKey(by.pair.key)))
  return {
    cert: pem('CERTIFICATE', sequence(content, algorithm, signature)),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  }
}

/** A certificate for CN=`name` that it signed itself. */
export const selfSigned = (name: string): Pair => certificate({ name })
