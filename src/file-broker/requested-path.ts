import { MAX_PATH } from '../protocol/broker-messages.ts'
import { Refusal } from './refusal.ts'

const MAX_NAME = 255

/**
 * A path as the sandbox wrote it. There is one spelling for each place: whatever would have to be resolved, or could be read in
 * two ways, is refused before anything is asked of the disk.
 */
export function requestedPath(text: string): string {
  const [top, ...names] = text.split('/')
  if (top !== '' || names.length === 0 || Buffer.byteLength(text) >= MAX_PATH || !names.every(isPlainName))
    throw new Refusal('bad-path')
  return text
}

/** Whether a name can be asked for. */
export const isPlainName = (name: string): boolean =>
  name !== '' &&
  name !== '.' &&
  name !== '..' &&
  Buffer.byteLength(name) <= MAX_NAME &&
  name.isWellFormed() &&
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this pattern refuses
  !/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(name)
