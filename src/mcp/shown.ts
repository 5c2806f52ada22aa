/** What of a file, a list or an output a model is shown: clients cut long results, or refuse them. */

/** Of one text or list. Claude Code refuses results of more than 25,000 tokens. */
export const MOST_SHOWN = 32 * 1024

export interface ShownBytes {
  readonly content: string
  readonly encoding: 'utf-8' | 'base64'
  /** How many of the bytes that is. */
  readonly length: number
}

/** Base64 tells a model little, and costs it twice as much. */
const MOST_BINARY = 8 * 1024

/** A character that the end of the part cuts is left for the next part. Bytes that are no text are shown in base64. */
export function showBytes(bytes: Uint8Array, isLast: boolean): ShownBytes {
  for (let cut = 0; cut <= (isLast ? 0 : 3) && cut < Math.max(1, bytes.length); cut++) {
    const part = bytes.subarray(0, bytes.length - cut)
    const content = textOf(part)
    if (content !== undefined) return { content, encoding: 'utf-8', length: part.length }
  }
  const part = bytes.subarray(0, MOST_BINARY)
  return { content: Buffer.from(part).toString('base64'), encoding: 'base64', length: part.length }
}

function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined
  // An offset may lie within a character.
  const begin = Math.max(
    0,
    bytes.subarray(0, 4).findIndex(byte => (byte & 0xc0) !== 0x80),
  )
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes.subarray(begin))
    return begin > 0 ? `\ufffd${text}` : text
  } catch {
    return undefined
  }
}

/** The first items that fit, and how many are left out. */
export function firstItems<T>(items: readonly T[], most = MOST_SHOWN): { shown: readonly T[]; rest: number } {
  let size = 0
  const end = items.findIndex(item => {
    size += JSON.stringify(item).length
    return size > most
  })
  return end < 0 ? { shown: items, rest: 0 } : { shown: items.slice(0, end), rest: items.length - end }
}
