/** Which names a small directory has, listed once, for those who would otherwise ask for dozens that are not there. */
import { readdirSync, statSync } from 'node:fs'

export interface ListedNames {
  /** False proves that it is absent; true only that it is worth asking. */
  mayHave(name: string): boolean
}

/**
 * Undefined when single questions are the better way: not readable, large, or with a name that is not plain ASCII. A file system
 * that folds case knows more spellings of one name than `toLowerCase` does (`ſ` is an `s` there).
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

/** Bytes of a directory, on ext4 about 1,000 names: more take longer to list than to be asked for. */
const MAX_SIZE = 32_768
const NOT_ASCII = /[^ -~]/
