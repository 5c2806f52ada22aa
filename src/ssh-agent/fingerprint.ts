import { createHash } from 'node:crypto'

/** As `ssh-add -l` prints it. */
export const sshFingerprint = (key: Buffer): string =>
  `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`
