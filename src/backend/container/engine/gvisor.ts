/**
 * gVisor's runtime: programs of the container meet a kernel of gVisor's own, in a process of the host that no file can be opened by.
 * A second process, the gofer, opens files for it. What is mounted in the gofer's namespace is what the sandbox sees, so pen holds
 * places there as it does elsewhere in the container's.
 */
import { readFileSync } from 'node:fs'
import { PenError } from '../../../base/error.ts'
import { findTool } from '../../../base/find-tool.ts'
import { childrenOf, statFields } from '../../../base/kernel/processes.ts'
import { capture } from '../../../base/spawn.ts'
import type { Weaker } from '../../../plan/gaps.ts'

export const GVISOR_RUNTIME = 'runsc'

/**
 * Sockets are those of the container's own network namespace, where the door is; the exec daemon's is opened by its name, and none can be made.
 * Files are looked for anew each time, and no descriptor outlives its use: one for writing would outlive the mount that protects the file.
 */
const FLAGS = ['network=host', 'host-uds=open', 'file-access-mounts=shared', 'dcache=0'] as const
/** The kernel lets nobody rename what is mounted on, but only in the namespace of the one who tries: that must be the gofer. */
const GOFER_ALONE = 'directfs'
const ANSWER_MS = 5000

let asked: Promise<readonly string[]> | undefined

/** Each without its dashes, as podman hands them on to the runtime. */
export function gvisorFlags(): Promise<readonly string[]> {
  asked ??= askFlags()
  asked.catch(() => undefined)
  return asked
}

async function askFlags(): Promise<readonly string[]> {
  const program = findTool(GVISOR_RUNTIME)
  if (program === undefined)
    throw new PenError('MISSING_TOOL', {
      what: 'isolation "gvisor" needs gVisor’s runtime, runsc, which is not installed',
      hint: 'apt-get install runsc',
    })
  // Unknown flags are refused, and this one came with a later version.
  const { stdout, stderr } = await capture([program, 'flags'], { env: {}, timeoutMs: ANSWER_MS, cwd: '/' })
  const known = new RegExp(`^\\s*-{1,2}${GOFER_ALONE}\\b`, 'm').test(`${stdout}\n${stderr}`)
  return known ? [...FLAGS, `${GOFER_ALONE}=false`] : FLAGS
}

/** The gofer of the sandbox whose process this is: both are children of the one process that watches over this container. */
export function goferOf(sandbox: number): number | undefined {
  try {
    const monitor = Number(statFields(sandbox)?.[1])
    if (!(monitor > 1)) return undefined
    const gofers = childrenOf(monitor).filter(pid =>
      readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith('runsc-gofer\0'),
    )
    return gofers.length === 1 ? gofers[0] : undefined
  } catch {
    // Not there yet, or gone.
    return undefined
  }
}

/**
 * gVisor does not know `setfsuid`, by which the exec daemon otherwise enters a directory that is the user's alone. SYS_ADMIN and
 * DAC_OVERRIDE, of gVisor's own kernel, let the exec daemon bound the processes; the exec daemon drops both before any command starts.
 */
export const GVISOR_CAPABILITIES = ['DAC_OVERRIDE', 'DAC_READ_SEARCH', 'SYS_ADMIN'] as const

/** A second bound, of the host: gVisor alone was seen to have 150, each process inside 8 or 9 more, and a busy machine twice as many. */
export const gvisorTasks = (processes: number): number => 512 + 16 * processes

/** The host's kernel does not see the open files of a program inside. */
export const GVISOR_LIMITS: readonly Weaker[] = [
  { name: 'limit-files', how: 'limits.files is held by gVisor, and pen is not told when it is reached' },
]
