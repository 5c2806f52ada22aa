/** Bounds the results of tools: clients truncate or refuse long ones. */

/** Bytes of one text or list. Claude Code refuses results above 25,000 tokens. */
export const MAX_RESULT = 32 * 1024

interface EncodedBytes {
  readonly content: string
  readonly encoding: 'utf-8' | 'base64'
  /** How many of the bytes are encoded. */
  readonly length: number
}

/** Base64 costs a model twice the tokens and tells it little. */
const MAX_BINARY = 8 * 1024

/** Leaves a character that is cut at the end for the next part. Encodes bytes that are not text in base64. */
export function encodeBytes(bytes: Uint8Array, isLast: boolean): EncodedBytes {
  for (let cut = 0; cut <= (isLast ? 0 : 3) && cut < Math.max(1, bytes.length); cut++) {
    const part = bytes.subarray(0, bytes.length - cut)
    const content = textOf(part)
    if (content !== undefined) return { content, encoding: 'utf-8', length: part.length }
  }
  const part = bytes.subarray(0, MAX_BINARY)
  return { content: Buffer.from(part).toString('base64'), encoding: 'base64', length: part.length }
}

function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined
  // The offset may be inside a character.
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

/** The first items that fit, and how many do not. */
export function firstItems<T>(
  items: readonly T[],
  maxLength = MAX_RESULT,
): { shown: readonly T[]; rest: number } {
  let size = 0
  const end = items.findIndex(item => {
    size += JSON.stringify(item).length
    return size > maxLength
  })
  return end < 0 ? { shown: items, rest: 0 } : { shown: items.slice(0, end), rest: items.length - end }
}
