/**
 * Whether a lower-case `xn--` label is well-formed punycode (RFC 3492). The decoded text is never used.
 *
 * Names are compared as spelled. One resolver may repair a malformed label that another refuses, and such a disagreement
 * can bypass a filter. The encoding of a label is unique, so decoding it is a complete check.
 */
export function isWellFormedPunycode(label: string): boolean {
  if (!label.startsWith('xn--')) return false
  const encoded = label.slice(4)
  const delimiter = encoded.lastIndexOf('-')
  // A delimiter at the start is not a delimiter. The digit check below refuses it.
  const basic = Math.max(delimiter, 0)
  const digits = delimiter > 0 ? encoded.slice(delimiter + 1) : encoded
  // Punycode of ASCII text is an alternative spelling of a plain label.
  if (digits === '') return false

  let codePoint = 128
  let index = 0
  let bias = 72
  let length = basic
  let at = 0
  while (at < digits.length) {
    const before = index
    let weight = 1
    for (let k = 36; ; k += 36) {
      const digit = digitValue(digits.charCodeAt(at++))
      if (digit === undefined) return false
      index += digit * weight
      if (index > 0x7fffffff) return false
      const threshold = Math.min(Math.max(k - bias, 1), 26)
      if (digit < threshold) break
      weight *= 36 - threshold
    }
    length += 1
    bias = adapt(index - before, length, before === 0)
    codePoint += Math.floor(index / length)
    index = (index % length) + 1
    if (codePoint > 0x10ffff || (codePoint >= 0xd800 && codePoint <= 0xdfff)) return false
  }
  return true
}

/** `a`–`z` are 0–25 and `0`–`9` are 26–35. A hyphen and the end of the text (NaN) are not digits. */
function digitValue(code: number): number | undefined {
  if (code >= 0x61 && code <= 0x7a) return code - 0x61
  if (code >= 0x30 && code <= 0x39) return code - 0x30 + 26
  return undefined
}

function adapt(delta: number, length: number, first: boolean): number {
  let rest = Math.floor(delta / (first ? 700 : 2))
  rest += Math.floor(rest / length)
  let k = 0
  while (rest > 455) {
    rest = Math.floor(rest / 35)
    k += 36
  }
  return k + Math.floor((36 * rest) / (rest + 38))
}
