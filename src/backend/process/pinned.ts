import { closeSync, constants, fstatSync, openSync, readlinkSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { O_PATH } from '../../base/kernel/descriptor.ts'
import type { UndoStack } from '../../base/undo.ts'
import type { Plan } from '../../plan/plan.ts'
import { isWithin } from '../../policy/files/path.ts'

/**
 * Opens the mounts inside the workspace by descriptor. Another sandbox of the same project could swap a directory for a
 * link between pen's check and bubblewrap's mount. pen compares the descriptor with the path, and bubblewrap compares
 * again.
 */
export function pinnedDescriptors(plan: Plan, undo: UndoStack): Map<string, number> {
  const out = new Map<string, number>()
  for (const step of plan.steps) {
    if (step.op !== 'bind' || step.from === plan.workspace || !isWithin(step.from, plan.workspace)) continue
    if (out.has(step.from)) continue
    const fd = openPinned(step.from)
    undo.push('a pinned path', () => closeSync(fd))
    out.set(step.from, fd)
  }
  return out
}

export function openPinned(path: string): number {
  const fd = openSync(path, O_PATH | constants.O_NOFOLLOW)
  if (!fstatSync(fd).isSymbolicLink() && readlinkSync(`/proc/self/fd/${fd}`) === path) return fd
  closeSync(fd)
  throw new PenError('PATH_REFUSED', {
    what: 'a path in the workspace changed while pen checked it',
    at: path,
    hint: 'run it again',
  })
}
