/**
 * gVisor's runtime. Programs of the container use gVisor's own kernel, in a process of the host that cannot open files.
 * A second process, the gofer, opens files for it. The sandbox sees the mounts of the gofer's namespace, so pen holds
 * places there.
 */
import { readFileSync } from 'node:fs'
import { PenError } from '../../../base/error.ts'
import { findTool } from '../../../base/find-tool.ts'
import { childrenOf, statFields } from '../../../base/kernel/processes.ts'
import { capture } from '../../../base/spawn.ts'
import type { Weaker } from '../../../plan/gaps.ts'

export const GVISOR_RUNTIME = 'runsc'

/**
 * Sockets use the container's network namespace, where the door is. The exec daemon's socket is opened by path, and no
 * Unix socket can be made. File lookups are not cached, and no descriptor outlives its use: a writable one would
 * outlive the mount that protects the file.
 */
const FLAGS = ['network=host', 'host-uds=open', 'file-access-mounts=shared', 'dcache=0'] as const
/**
 * The kernel refuses to rename a mount point, but only in the mount namespace of the caller. So the gofer must do every
 * rename.
 */
const GOFER_ALONE = 'directfs'
const ANSWER_MS = 5000

let asked: Promise<readonly string[]> | undefined

/** Flags without dashes, as podman passes them to the runtime. */
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
  // runsc refuses unknown flags, and old versions lack this one.
  const { stdout, stderr } = await capture([program, 'flags'], { env: {}, timeoutMs: ANSWER_MS, cwd: '/' })
  const known = new RegExp(`^\\s*-{1,2}${GOFER_ALONE}\\b`, 'm').test(`${stdout}\n${stderr}`)
  return known ? [...FLAGS, `${GOFER_ALONE}=false`] : FLAGS
}

/** The gofer of this sandbox process. Both are children of the process that supervises the container. */
export function goferOf(sandbox: number): number | undefined {
  try {
    const monitor = Number(statFields(sandbox)?.[1])
    if (!(monitor > 1)) return undefined
    const gofers = childrenOf(monitor).filter(pid =>
      readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith('runsc-gofer\0'),
    )
    return gofers.length === 1 ? gofers[0] : undefined
  } catch {
    // The process does not exist yet, or has ended.
    return undefined
  }
}

/**
 * gVisor lacks `setfsuid`, with which the exec daemon otherwise enters a directory of the user. SYS_ADMIN and
 * DAC_OVERRIDE, in gVisor's own kernel, let the exec daemon set the process limit. The exec daemon drops both before
 * any command starts.
 */
export const GVISOR_CAPABILITIES = ['DAC_OVERRIDE', 'DAC_READ_SEARCH', 'SYS_ADMIN'] as const

/**
 * A second limit, on the host. gVisor alone used 150 tasks, and each process inside 8 or 9 more. A busy machine used
 * twice as many.
 */
export const gvisorTasks = (processes: number): number => 512 + 16 * processes

/** The host's kernel does not see the open files of a program inside. */
export const GVISOR_LIMITS: readonly Weaker[] = [
  { name: 'limit-files', how: 'gVisor enforces limits.files, and does not report when it is reached' },
]
