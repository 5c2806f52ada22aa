import { MAX_PATH } from '../protocol/broker-messages.ts'
import { Refusal } from './refusal.ts'

const MAX_NAME = 255

/**
 * Checks a path of the sandbox. Each file has one valid spelling. Paths that would need resolving, or that have two
 * readings, are refused before any access to the disk.
 */
export function requestedPath(text: string): string {
  const [top, ...names] = text.split('/')
  if (top !== '' || names.length === 0 || Buffer.byteLength(text) >= MAX_PATH || !names.every(isPlainName))
    throw new Refusal('bad-path')
  return text
}

/** Whether a client may request the name. */
export const isPlainName = (name: string): boolean =>
  name !== '' &&
  name !== '.' &&
  name !== '..' &&
  Buffer.byteLength(name) <= MAX_NAME &&
  name.isWellFormed() &&
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this pattern refuses
  !/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(name)
