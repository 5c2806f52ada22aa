/**
 * The text that a sandbox has in place of a secret: of the same length and shape, so that clients accept it. It is derived
 * from the value with the project's key. So it stays the same while the value does: agents remember which key the user
 * approved.
 */

/** Clients check these beginnings. */
const PREFIXES =
  /^(sk-ant-[a-z0-9]+-|sk-proj-|sk-svcacct-|sk-or-v1-|sk-|ghp_|gho_|ghu_|ghs_|ghr_|github_pat_|glpat-|xox[abeoprs]-|AKIA|ASIA|AIza|ya29\.|npm_|pypi-|hf_|r8_|gsk_|xai-|dop_v1_|shpat_)/

const UPPER = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const LOWER = 'abcdefghijklmnopqrstuvwxyz'
const DIGITS = '0123456789'
/** Fewer random characters could be in a request by chance. */
const LEAST_RANDOM = 8

/** An endless row of random bytes. */
export type Random = () => number

/** Undefined when the value is too short, or has too few letters and digits, to differ from other text. */
export function placeholderFor(value: string, random: Random): string | undefined {
  const kept = keptLength(value)
  for (let tries = 0; tries < 8; tries++) {
    let replaced = 0
    let out = value.slice(0, kept)
    for (const character of value.slice(kept)) {
      const kind = [UPPER, LOWER, DIGITS].find(letters => letters.includes(character))
      if (kind !== undefined) replaced++
      out += kind === undefined ? character : kind[randomBelow(kind.length, random)]
    }
    if (replaced < LEAST_RANDOM) return undefined
    if (out !== value) return out
  }
  return undefined
}

/** The header and the claims of a JWT are not secret, and clients read them. Only its signature is. */
function keptLength(value: string): number {
  const token = /^eyJ[\w-]+\.eyJ[\w-]+\.(?=[\w-]{16})/.exec(value)
  return (token ?? PREFIXES.exec(value))?.[0].length ?? 0
}

/** Every number is equally likely. */
function randomBelow(most: number, random: Random): number {
  for (;;) {
    const byte = random()
    if (byte < 256 - (256 % most)) return byte % most
  }
}
