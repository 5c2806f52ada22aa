/**
 * Everything that a process has started, and has not ended. On Linux a subreaper is the parent of whatever its descendants leave behind,
 * also of what forked twice or began a session of its own, so that walking down from it finds all.
 */
import { listTree, statFields } from '../../../limits/process-tree.ts'

const PATIENCE_MS = 1500
const PAUSE_MS = 2

export const canFindAll = (): boolean => process.platform === 'linux'

interface Descendant {
  readonly pid: number
  readonly isDead: boolean
}

export function lookBelow(root: number): readonly Descendant[] {
  if (!canFindAll()) return []
  return listTree(root)
    .filter(({ depth }) => depth > 0)
    .map(({ pid }) => ({ pid, isDead: isDead(pid) }))
}

/** With all of its threads: until then it may have children, whatever is said of the first one. */
function isDead(pid: number): boolean {
  const fields = statFields(pid) ?? []
  return 'ZX'.includes(fields[0] ?? 'X') && Number(fields[THREADS] ?? 0) <= 1
}

const THREADS = 17

/** Without the dead, whose parent has not asked for them yet. */
export const livingBelow = (root: number): number[] =>
  lookBelow(root).flatMap(({ pid, isDead }) => (isDead ? [] : [pid]))

/**
 * Again and again, because what is about to die may still fork. Returns how many are left after that.
 *
 * What dies during a look hands on its children, from thread to thread and then to the root, and the look may miss them. So it is
 * over when there is nothing but what was dead before the look began.
 */
export async function endBelow(
  root: number,
  except: ReadonlySet<number> = new Set(),
  look = lookBelow,
): Promise<number> {
  const late = performance.now() + PATIENCE_MS
  for (let dead: ReadonlySet<number> | undefined; ; await Bun.sleep(PAUSE_MS)) {
    const found = look(root).filter(({ pid }) => !except.has(pid))
    const living = found.filter(one => !one.isDead)
    const isOver = found.every(({ pid }) => dead?.has(pid))
    if ((dead !== undefined && isOver) || performance.now() > late) return living.length
    dead = new Set(found.flatMap(one => (one.isDead ? [one.pid] : [])))
    for (const { pid } of living) signal(pid, 'SIGKILL')
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
