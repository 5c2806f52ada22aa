/** The sandbox's init as the host's `/proc` shows it. Its pid comes from bubblewrap, which is trusted. */
import { signal } from '../../base/kernel/end-processes.ts'
import { readOfProcess } from '../../base/kernel/kernel-file.ts'
import { awaitEnd } from '../../base/kernel/process.ts'
import { childrenOf, statFields } from '../../base/kernel/processes.ts'

/**
 * The process group of the command. On a terminal of its own, the command leads another group than the init. Undefined
 * when there is no command, or when the kernel does not list children. The caller then signals the init's group.
 */
export function commandGroup(init: number): number | undefined {
  const [command] = childrenOf(init)
  const group = command === undefined ? 0 : Number(statFields(command)?.[2])
  return Number.isInteger(group) && group > 1 ? group : undefined
}

/** Far longer than the kernel needs. A process that hangs on a dead disk must not stop pen from exiting. */
const TIMEOUT_MS = 5000

/** Longer than the end of an init usually takes. */
const BRIEF_MS = 4

/**
 * Waits until the sandbox has ended. Bubblewrap exits with the command, and the kernel kills the rest a moment later.
 * An init is gone only when every process of its PID namespace is, so nothing inside can write a file after that. The
 * init is also killed here: the sandbox can write to its memory (/proc/1/mem) and undo its die-with-parent.
 */
export async function endInit(init: number): Promise<void> {
  const began = performance.now()
  for (let spent = 0; isInit(init) && spent < TIMEOUT_MS; spent = performance.now() - began) {
    signal(init, 'SIGKILL')
    // Wait instead of polling: a poll would take the processor on which the init has to end.
    if (spent < BRIEF_MS) awaitEnd(init, BRIEF_MS)
    else await Bun.sleep(1)
  }
}

/** True when the pid is alive and the first of a PID namespace. A pid that the kernel reused is not. */
function isInit(pid: number): boolean {
  const status = readOfProcess(pid, 'status')
  return status !== undefined && !/^State:\t[ZX]/m.test(status) && /^NSpid:(\t\d+)+\t1$/m.test(status)
}
