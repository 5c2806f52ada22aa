/**
 * Everything that a process has started, and has not ended. On Linux a subreaper is the parent of whatever its descendants leave behind,
 * also of what forked twice or began a session of its own, so that walking down from it finds all.
 */
import { listTree, statFields } from '../limits/process-tree.ts'

const PATIENCE_MS = 1500
const PAUSE_MS = 2

export const canFindAll = (): boolean => process.platform === 'linux'

/** Without the dead, whose parent has not asked for them yet. */
export function livingBelow(root: number): number[] {
  if (!canFindAll()) return []
  return listTree(root)
    .filter(({ pid, depth }) => depth > 0 && !'ZX'.includes(statFields(pid)?.[0] ?? 'X'))
    .map(({ pid }) => pid)
}

/** Again and again, because what is about to die may still fork. Returns how many are left after that. */
export async function endBelow(root: number, except: ReadonlySet<number> = new Set()): Promise<number> {
  const late = performance.now() + PATIENCE_MS
  for (;;) {
    const living = livingBelow(root).filter(pid => !except.has(pid))
    if (living.length === 0 || performance.now() > late) return living.length
    for (const pid of living) signal(pid, 'SIGKILL')
    await Bun.sleep(PAUSE_MS)
  }
}

/** False when it is not there, or not ours. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name)
    return true
  } catch {
    return false
  }
}

/** Where the kernel does not tell, it is believed. */
export const isChildOf = (pid: number, parent: number): boolean =>
  !canFindAll() || Number(statFields(pid)?.[1]) === parent
