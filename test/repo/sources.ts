/** The repository as the rules see it: its TypeScript files, their text and their imports. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

export const ROOT = join(import.meta.dir, '../..')

export interface Import {
  /** As written: `./x.ts`, `node:fs`, `valibot`. */
  readonly specifier: string
  /** From the root, when it names a file of ours: `src/base/error.ts`. */
  readonly file: string | undefined
  /** `import type` leaves nothing at run time. */
  readonly typeOnly: boolean
}

export interface Source {
  /** From the root, with `/`. */
  readonly path: string
  readonly text: string
  /** Without comments and string contents, for rules about words in code. */
  readonly code: string
  readonly imports: readonly Import[]
  readonly isTest: boolean
}

export const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

export function list(folder: string, endings: readonly string[] = ['.ts']): string[] {
  let entries: string[]
  try {
    entries = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
  } catch {
    return []
  }
  return entries
    .filter(name => endings.some(ending => name.endsWith(ending)))
    .filter(name => !name.includes('node_modules'))
    .map(name => join(folder, name))
    .sort()
}

export function sources(...folders: readonly string[]): Source[] {
  return folders.flatMap(folder => list(folder).map(describe))
}

function describe(path: string): Source {
  const text = read(path)
  return { path, text, code: codeOf(text), imports: importsOf(path, text), isTest: path.endsWith('.test.ts') }
}

const IMPORT = /^\s*(?:import|export)\s+(type\s)?(?:[^'"`;]*?\sfrom\s+)?['"]([^'"]+)['"]/gm
const DYNAMIC = /\b(?:import|require)\(\s*['"]([^'"]+)['"]/g

export function importsOf(path: string, text: string): Import[] {
  const found: Import[] = []
  const add = (specifier: string, typeOnly: boolean): void => {
    const file = specifier.startsWith('.') ? relative(ROOT, join(ROOT, dirname(path), specifier)) : undefined
    found.push({ specifier, file, typeOnly })
  }
  const plain = text.replace(/\/\*[\s\S]*?\*\//g, '')
  for (const [, type, specifier = ''] of plain.matchAll(IMPORT)) add(specifier, type !== undefined)
  for (const [, specifier = ''] of plain.matchAll(DYNAMIC)) add(specifier, false)
  return found
}

/** Good enough for word rules: a regular expression with quotes may hide a word, never invent one. */
export function codeOf(text: string): string {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, "''")
    .replace(/\/\/[^\n]*/g, '')
}
