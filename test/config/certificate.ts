import { generateKeyPairSync, sign } from 'node:crypto'

/** One value in DER: tag, length, content. */
const der = (tag: number, ...content: Buffer[]): Buffer => {
  const body = Buffer.concat(content)
  const length = body.length < 128 ? [body.length] : [0x82, body.length >> 8, body.length & 255]
  return Buffer.concat([Buffer.from([tag, ...length]), body])
}

const sequence = (...content: Buffer[]) => der(0x30, ...content)
const objectId = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))
const time = (text: string) => der(0x18, Buffer.from(text))
const pem = (label: string, bytes: Buffer) => `-----BEGIN ${label}-----\n${bytes.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END ${label}-----\n`

/** A new key with a certificate that it signed itself (Ed25519, for CN=`name`), so that no key lies in the repository and none expires. */
export const selfSigned = (name: string): { cert: string, key: string } => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const algorithm = sequence(objectId('2b6570'))
  const subject = sequence(der(0x31, sequence(objectId('550403'), der(0x0c, Buffer.from(name)))))
  const version = der(0xa0, der(0x02, Buffer.from([2])))
  const serial = der(0x02, Buffer.from([1]))
  const validity = sequence(time('20200101000000Z'), time('99991231235959Z'))
  const content = sequence(version, serial, algorithm, subject, validity, subject, publicKey.export({ type: 'spki', format: 'der' }))
  const signature = der(0x03, Buffer.from([0]), sign(null, content, privateKey))
  return {
    cert: pem('CERTIFICATE', sequence(content, algorithm, signature)),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  }
}
