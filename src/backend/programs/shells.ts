/** Every file that is a shell: by name, by link, and by its other hard links. */
import { isShellName } from '../../plan/system-view.ts'
import type { ProgramFiles } from './files.ts'
import { follow, inDirectory } from './follow.ts'

export interface Shells {
  /** The files themselves are covered, so every path to them is closed. */
  readonly files: readonly string[]
  has(file: string): boolean
}

export const NO_SHELLS: Shells = { files: [], has: () => false }

export function findShells(files: ProgramFiles, directories: readonly string[]): Shells {
  const out = new Set<string>()
  const ids = new Set<string>()
  const bySize = new Map<number, string[]>()
  let linked = false
  for (const directory of directories)
    for (const { name } of files.list(directory)) {
      if (!isShellName(name)) continue
      const shell = follow(files, inDirectory(directory, name))
      if (shell === undefined) continue
      out.add(shell.file)
      ids.add(shell.status.id)
      bySize.set(shell.status.size, [...(bySize.get(shell.status.size) ?? []), shell.file])
      if (shell.status.links > 1) linked = true
    }
  const isShell = (file: string): boolean => {
    const status = files.look(file)
    if (status?.kind !== 'file') return false
    if (ids.has(status.id)) return true
    return (bySize.get(status.size) ?? []).some(shell => files.same?.(shell, file) === true)
  }
  if (linked || files.same !== undefined)
    for (const directory of directories)
      for (const { name, kind } of files.list(directory)) {
        const file = inDirectory(directory, name)
        if (kind === 'file' && isShell(file)) out.add(file)
      }
  return { files: [...out], has: file => out.has(file) || isShell(file) }
}
