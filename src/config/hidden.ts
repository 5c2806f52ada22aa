/**
 * Characters that a reviewer cannot see or distinguish. A deny rule that ends in a no-break space denies nothing, and a
 * bidirectional override displays another path than the one granted.
 */

// Controls, lone surrogates, format and default-ignorable characters, separators, noncharacters, look-alikes of a space.
const HIDDEN =
  /[\p{Cc}\p{Cs}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u{a0}\u{1680}\u{2000}-\u{200a}\u{202f}\u{205f}\u{2800}]/u

// Characters that move the cursor or reorder text. Emoji and joiners are harmless in a comment; these are not.
const DISRUPTIVE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/u

/** The offset of the first character that is not allowed in a value; -1 if there is none. */
export const findHidden = (text: string): number => text.search(HIDDEN)

/** The offset of the first character that is not allowed even in a comment; -1 if there is none. */
export const findDisruptive = (text: string): number => text.search(DISRUPTIVE)

/** `U+202E (bidirectional control)`: describes the character at an offset without printing it. */
export function nameHidden(text: string, offset: number): string {
  const char = String.fromCodePoint(text.codePointAt(offset) ?? 0)
  const kind = KINDS.find(([pattern]) => pattern.test(char))?.[1] ?? 'invisible character'
  return `${codePoint(text, offset)} (${kind})`
}

/** `U+00E9`: the code point at an offset. */
export const codePoint = (text: string, offset: number): string =>
  `U+${(text.codePointAt(offset) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`

const KINDS: readonly (readonly [RegExp, string])[] = [
  [/\p{Cc}/u, 'control character'],
  [/\p{Cs}/u, 'half of a surrogate pair'],
  [/\p{Bidi_Control}/u, 'bidirectional control'],
  [/\p{Noncharacter_Code_Point}/u, 'not a character'],
  [/\p{Z}|\u2800/u, 'looks like a space'],
]
