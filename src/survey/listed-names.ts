/** The names in a small directory, listed once, for callers that would otherwise look up dozens of absent names. */
import { readdirSync, statSync } from 'node:fs'

export interface ListedNames {
  /** False proves that the name is absent. True means: look it up. */
  mayHave(name: string): boolean
}

/**
 * Undefined when single look-ups are better: the directory is unreadable, large, or has a name that is not plain ASCII. A
 * file system that folds case knows more spellings of one name than `toLowerCase` does (`ſ` is an `s` there).
 */
export function listNames(dir: string): ListedNames | undefined {
  try {
    if (statSync(dir).size > MAX_SIZE) return undefined
    const names = new Set<string>()
    for (const name of readdirSync(dir)) {
      if (NOT_ASCII.test(name)) return undefined
      names.add(name.toLowerCase())
    }
    return { mayHave: name => names.has(name.toLowerCase()) }
  } catch {
    return undefined
  }
}

/** Bytes of a directory; on ext4 about 1,000 names. Listing more takes longer than single look-ups. */
const MAX_SIZE = 32_768
const NOT_ASCII = /[^ -~]/
