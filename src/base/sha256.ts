/** SHA-256. Under Bun without node:crypto, which takes longer to load than the rest of a start. */
export function sha256(text: string): string {
  if (typeof Bun !== 'undefined') return new Bun.CryptoHasher('sha256').update(text).digest('hex')
  return process.getBuiltinModule('node:crypto').createHash('sha256').update(text).digest('hex')
}
