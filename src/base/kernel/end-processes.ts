/**
 * Ends process trees. On Linux a subreaper becomes the parent of every orphan below it, also of one that forked twice or
 * started its own session. So the tree below a subreaper is complete.
 */
import { PenError } from '../error.ts'
import { isZombie, listTree, statFields } from './processes.ts'
import { tryCall } from './system-call.ts'

const PR_SET_CHILD_SUBREAPER = 36
const PATIENCE_MS = 1500
const PAUSE_MS = 2

/** Elsewhere no process can adopt orphans or list its descendants. */
const canFindAll = (): boolean => process.platform === 'linux'

/** Makes this process a subreaper. That needs no namespace and no privilege. */
export function adoptOrphans(): void {
  if (canFindAll() && tryCall('prctl', PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
    throw new PenError('BACKEND', { what: 'the kernel does not let pen adopt orphan processes' })
}

/** A negative pid is a process group. False when it is gone, or another user's. */
export function signal(pid: number, name: NodeJS.Signals | number): boolean {
  try {
    process.kill(pid, name)
    return true
  } catch {
    return false
  }
}

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

const THREADS = 17

/** A process whose first thread has ended may still have others, and these may have children. */
function isDead(pid: number): boolean {
  const fields = statFields(pid)
  return fields === undefined || (isZombie(fields) && Number(fields[THREADS] ?? 0) <= 1)
}

/** Zombies left out. */
export const livingBelow = (root: number): number[] =>
  lookBelow(root).flatMap(({ pid, isDead }) => (isDead ? [] : [pid]))

/**
 * Kills every descendant, again and again, because a dying process may still fork. Returns how many are left.
 *
 * A process that dies during a look passes its children to another thread or to the root, and the look may miss them. So
 * the work is done only when a look finds nothing but processes that were dead before it began.
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

/** True where the kernel does not list parents. */
export const isChildOf = (pid: number, parent: number): boolean =>
  !canFindAll() || Number(statFields(pid)?.[1]) === parent
