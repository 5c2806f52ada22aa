/**
 * Finds the file and kind of a command's program. The command may come from an agent: it is compared, never expanded.
 */
import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { basename } from '../../../base/posix-path.ts'
import { readProgramHead } from '../../../base/program-head.ts'
import { isShellName } from '../../../plan/system-view.ts'
import type { Tool } from '../../../policy/decide-tool.ts'
import { normalize } from '../../../policy/files/path.ts'

export interface Program {
  readonly file: string
  readonly tool: Tool
}

/** Undefined when there is no such program. Only the system or the user writes to the directories of `search`. */
export function findProgram(word: string, search: readonly string[], cwd: string): Program | undefined {
  if (word === '' || word.includes('\0')) return undefined
  if (!word.includes('/')) {
    const file = lookUp(word, search)
    return file === undefined ? undefined : { file, tool: { name: word, shell: isShell(word, file) } }
  }
  const file = normalize(word.startsWith('/') ? word : `${cwd}/${word}`)
  const real = runnable(file)
  if (real === undefined) return undefined
  // An absolute path is the tool of that name only if the name leads to the same file.
  const name = basename(file)
  const known = lookUp(name, search)
  const isSame = known !== undefined && runnable(known) === real
  return { file, tool: { name: isSame ? name : undefined, shell: isShell(name, file) } }
}

function lookUp(name: string, search: readonly string[]): string | undefined {
  if (name === '.' || name === '..') return undefined
  return search.map(directory => `${directory}/${name}`).find(file => runnable(file) !== undefined)
}

function runnable(file: string): string | undefined {
  try {
    if (!statSync(file).isFile()) return undefined
    accessSync(file, constants.X_OK)
    return realpathSync(file)
  } catch {
    return undefined
  }
}

/** By its own name, by that of the file behind links, or by its interpreter. */
function isShell(name: string, file: string): boolean {
  const real = runnable(file) ?? file
  if ([name, basename(file), basename(real)].some(isShellName)) return true
  const head = readProgramHead(real)
  if (head.kind !== 'script') return false
  const words = [head.interpreter, ...head.argument.split(/[ \t]+/)].map(word => basename(word))
  const [interpreter = ''] = words[0] === 'env' ? words.slice(1).filter(isProgramWord) : words
  return isShellName(interpreter)
}

/** Not an option of `env`, and not a variable. */
const isProgramWord = (word: string): boolean => word !== '' && !/^-|=/.test(word)
