/** Orphans of a command become children of pen, and end with the command. Also when the command killed its parent. */
import { adoptOrphans, endBelow, livingBelow } from '../../../base/kernel/end-processes.ts'

/** Call it before a process of the sandbox starts. The returned function kills all orphans since then. */
export function trackOrphans(): () => Promise<number> {
  adoptOrphans()
  const before = new Set(livingBelow(process.pid))
  return () => endBelow(process.pid, before)
}
