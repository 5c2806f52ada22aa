/** The sandbox's init as the host's `/proc` shows it. Its pid was told by bubblewrap, which is trusted. */
import { signal } from '../../base/kernel/end-processes.ts'
import { readOfProcess } from '../../base/kernel/kernel-file.ts'
import { awaitEnd } from '../../base/kernel/process.ts'
import { childrenOf, statFields } from '../../base/kernel/processes.ts'

/**
 * The process group of the command: on a terminal of its own it leads another group than the init's. Undefined when
 * there is no command, or a kernel that does not tell: then the init's group is the best there is.
 */
export function commandGroup(init: number): number | undefined {
  const [command] = childrenOf(init)
  const group = command === undefined ? 0 : Number(statFields(command)?.[2])
  return Number.isInteger(group) && group > 1 ? group : undefined
}

/** Far longer than the kernel needs; a process that hangs in a dead disk must not keep pen from ending. */
const PATIENCE_MS = 5000

/** Longer than it takes nearly always. */
const BRIEF_MS = 4

/**
 * bubblewrap ends as soon as the command does, and the kernel takes the rest of the sandbox with it a moment later. An
 * init is gone only when every process of its namespace is: from then on nothing can write a file any more.
 * It is ended here too: the sandbox can write into its memory (/proc/1/mem), and so make it forget to die with its parent.
 */
export async function endInit(init: number): Promise<void> {
  const began = performance.now()
  for (let spent = 0; isInit(init) && spent < PATIENCE_MS; spent = performance.now() - began) {
    signal(init, 'SIGKILL')
    // Not by looking again and again: that would keep it from the processor on which it is to end.
    if (spent < BRIEF_MS) awaitEnd(init, BRIEF_MS)
    else await Bun.sleep(1)
  }
}

/** Alive, and the first of a pid namespace: a number that was given to another process since is not. */
function isInit(pid: number): boolean {
  const status = readOfProcess(pid, 'status')
  return status !== undefined && !/^State:\t[ZX]/m.test(status) && /^NSpid:(\t\d+)+\t1$/m.test(status)
}
