/** Random file operations, done the same way in a plain directory and inside a layer. As a program: DIRECTORY, then JSON on stdin. */
import {
  chmodSync,
  cpSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'

export type Operation =
  | readonly ['write', path: string, content: string]
  | readonly ['append', path: string, content: string]
  | readonly ['remove' | 'directory', path: string]
  | readonly ['move', from: string, to: string]
  | readonly ['mode', path: string, mode: number]
  | readonly ['link', path: string, to: string]

const name = fc.constantFrom('a', 'b', 'c', 'é')
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map(names => names.join('/'))
const content = fc.constantFrom('', 'one\n', 'two\nlines\n', 'x'.repeat(70_000))

export const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.tuple(fc.constant('write' as const), path, content),
  fc.tuple(fc.constant('append' as const), path, content),
  fc.tuple(fc.constantFrom('remove' as const, 'directory' as const), path),
  fc.tuple(fc.constant('move' as const), path, path),
  fc.tuple(fc.constant('mode' as const), path, fc.constantFrom(0o600, 0o644, 0o700, 0o755)),
  fc.tuple(fc.constant('link' as const), path, fc.constantFrom('a', '../b', '/etc/passwd')),
)

/** An operation that fails changes nothing. Every file that is made or changed gets a time that depends on its number. */
export function perform(directory: string, operations: readonly Operation[], from: number): void {
  for (const [i, operation] of operations.entries())
    try {
      one(directory, operation)
      const stamped = operation[0] === 'move' ? operation[2] : operation[1]
      lutimesSync(join(directory, stamped), from + i, from + i)
    } catch {
      // The path does not exist, or is of another type.
    }
}

function one(directory: string, operation: Operation): unknown {
  const at = join(directory, operation[1])
  switch (operation[0]) {
    case 'write':
      requireNoLink(at)
      return writeFileSync(at, operation[2])
    case 'append':
      requireNoLink(at)
      return writeFileSync(at, operation[2], { flag: 'a' })
    case 'remove':
      return rmSync(at, { recursive: true })
    case 'directory':
      return mkdirSync(at, { recursive: true })
    case 'move': {
      const to = join(directory, operation[2])
      if (to === at || to.startsWith(`${at}/`) || at.startsWith(`${to}/`)) return undefined
      // As mv does it for a directory that overlayfs cannot rename.
      if (!lstatSync(at).isDirectory()) return renameSync(at, to)
      if (lstatSync(to, { throwIfNoEntry: false }) !== undefined) return undefined
      cpSync(at, to, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
      return rmSync(at, { recursive: true })
    }
    case 'mode':
      requireNoLink(at)
      return chmodSync(at, operation[2])
    case 'link':
      return symlinkSync(operation[2], at)
  }
}

function requireNoLink(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true) throw new Error('a link')
}

/** What is below a directory: type, mode, content and time of each path. */
export function treeOf(directory: string, below = ''): Map<string, string> {
  const out = new Map<string, string>()
  for (const entry of readdirSync(join(directory, below)).sort()) {
    const path = join(below, entry)
    const at = join(directory, path)
    const stats = lstatSync(at)
    if (stats.isDirectory()) {
      out.set(path, `directory ${stats.mode & 0o777}`)
      for (const [inner, what] of treeOf(directory, path)) out.set(inner, what)
    } else if (stats.isSymbolicLink()) out.set(path, `link ${readlinkSync(at)}`)
    else out.set(path, `${stats.mode & 0o777} ${stats.mtimeMs} ${readFileSync(at, 'latin1')}`)
  }
  return out
}

if (import.meta.main) {
  const [directory = ''] = process.argv.slice(2)
  const { operations, from } = JSON.parse(readFileSync(0, 'utf8')) as {
    operations: Operation[]
    from: number
  }
  perform(directory, operations, from)
}
