/** The process backend: a guard starts bubblewrap, which confines the command by namespaces, mounts and seccomp. */
import { closeSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { findTool, missingTool, TRUSTED_DIRECTORIES } from '../../base/find-tool.ts'
import { signal } from '../../base/kernel/end-processes.ts'
import { isHostRoot } from '../../base/kernel/host-root.ts'
import { landlockAbi } from '../../base/kernel/kernel-facts.ts'
import { UndoStack } from '../../base/undo.ts'
import { probeLimits } from '../../limits/probe.ts'
import type { Capabilities } from '../../plan/gaps.ts'
import type { Plan } from '../../plan/plan.ts'
import type { Backend, Ending, LiveMounts, Running, StartOptions } from '../backend.ts'
import { requireHeld } from '../mounts/contested.ts'
import { prepareMapping, USERNS_HINT } from '../mounts/id-mapping.ts'
import type { MountOrder } from '../mounts/mount-orders.ts'
import { type BwrapInputs, fillMemoryFile, openInputs } from './bwrap-inputs.ts'
import { avoidOwnProcessor } from './cpu-placement.ts'
import { bwrapFds, type Guard, startGuard } from './guard.ts'
import { commandGroup, endInit } from './init.ts'
import { withInsidePath } from './inside-path.ts'
import { makeNoexec } from './listed.ts'
import { BwrapStatus } from './status.ts'
import type { Crossing } from './stdio.ts'

export const processBackend: Backend = {
  name: 'process',
  network: 'made-by-pen',
  // Only the host's root needs an id mapping. Making it early keeps it off the guard's critical path.
  warm: () => (isHostRoot() ? prepareMapping() : undefined),
  probe: async () => capabilities(),
  start,
}

/** What bubblewrap can do on this machine. */
function capabilities(): Capabilities {
  return {
    backend: 'process',
    isolation: 'process',
    kernelFiles: true,
    networkNamespace: true,
    gateway: true,
    bridge: false,
    seccomp: true,
    // Evaluated only when a policy needs it. The guest program is pen's own binary, so a pen that runs from source has
    // none.
    get listedExec() {
      return import.meta.path.startsWith('/$bunfs/') && landlockAbi() > 0
    },
    images: false,
    mapsUser: true,
    daemonUser: false,
    ports: true,
    sshAgent: true,
    review: true,
    limits: probeLimits(),
  }
}

/** What a process sandbox needs of the start options. */
export interface ProcessOptions extends Omit<StartOptions, 'rules' | 'container'> {
  /** For a program of pen's own in place of the plan's command: descriptors, and its words when their numbers are known. */
  readonly program?: {
    readonly fds: readonly number[]
    argv(firstFd: number): readonly string[]
  }
}

export async function start(
  planned: Plan,
  options: ProcessOptions,
): Promise<Running & { readonly inside: string }> {
  const programs = { bwrap: requireTool('bwrap', 'bubblewrap'), shell: requireTool('sh', 'dash') }
  const undo = new UndoStack()
  let kill = (): void => undefined
  try {
    const plan = withInsidePath(planned)
    const daemon = options.execDaemon ? await import('./exec-daemon.ts') : undefined
    const inputs = openInputs(plan, options, daemon?.startExecDaemon(plan, undo), undo)
    const { guard, useAllProcessors } = launchGuard(programs, plan, options, inputs, undo)
    kill = () => signal(-guard.pid, 'SIGKILL')
    const { inside, late, sweep } = await configureBwrap(plan, options, inputs, undo)
    const status = new BwrapStatus(guard.statusFd, useAllProcessors)
    kill = () => killAll(guard.pid, status)
    // Loaded while bubblewrap works.
    const { NamespaceMounts } = await import('../mounts/live-mounts.ts')
    const mounts = new NamespaceMounts(() => status.initPid())
    kill = () => {
      mounts.close()
      killAll(guard.pid, status)
    }
    if ((late.length > 0 || plan.listedExec) && (await mounts.untilReady())) {
      if (late.length > 0) requireHeld(late, await mounts.carryOutDirectly(late))
      if (plan.listedExec) await makeNoexec(plan.steps, mounts, status.initPid())
      inputs.listed?.release()
    }
    return {
      ...running({ guard, status, crossing: inputs.crossing, sweep, mounts }, undo),
      ...inputs.daemon?.commands,
      inside,
    }
  } catch (error) {
    // Kill the guard before its pipes close. An empty argument list would make bubblewrap print an error.
    kill()
    await undo.unwind()
    throw error
  }
}

/** Starts the guard, and then bubblewrap, which waits for its arguments. pen prepares those on another core. */
function launchGuard(
  { bwrap, shell }: { readonly bwrap: string; readonly shell: string },
  plan: Plan,
  { placement, witness, layerLock, program }: ProcessOptions,
  inputs: BwrapInputs,
  undo: UndoStack,
): { readonly guard: Guard; readonly useAllProcessors: (init: number) => void } {
  const { args, seccompFd, pinned, crossing, daemon, listed, identity } = inputs
  const first = daemon ?? listed ?? program
  const command = first?.argv(inputs.firstGuestFd) ?? plan.argv
  const numbers = bwrapFds(placement.joinFds.length)
  const guard = placement.within(() =>
    startGuard({
      shell,
      argv: [
        ...placement.wrap,
        ...inputs.layerMount,
        bwrap,
        '--args',
        String(numbers.args),
        '--',
        ...command,
      ],
      stdio: crossing.stdio,
      argsFd: args.reader,
      seccompFd,
      joinFds: placement.joinFds,
      extraFds: [...pinned.values(), ...(first?.fds ?? [])],
      witnessFd: witness,
      layerFd: layerLock,
      env: placement.env,
      limits: { files: plan.limits.files },
      identity,
    }),
  )
  undo.push('the guard', () => guard.close())
  const useAllProcessors = avoidOwnProcessor(guard.pid)
  closeSync(args.reader)
  crossing.closeCopies()
  daemon?.closeCopies()
  guard.go()
  return { guard, useAllProcessors }
}

/**
 * Sends bubblewrap its filter and arguments. `inside` is the host's directory that the sandbox sees at `/run/pen`. `sweep` removes the
 * mount points that bubblewrap made.
 */
async function configureBwrap(
  plan: Plan,
  { placement, sandbox, cacheDir, neighbours }: ProcessOptions,
  { args, seccompFd, pinned, staging, daemon, listed, firstGuestFd }: BwrapInputs,
  undo: UndoStack,
): Promise<{ readonly inside: string; readonly late: readonly MountOrder[]; readonly sweep: () => void }> {
  const { prepareArguments, removeMadePoints, seccompFilter, showInside } = await import('./bwrap-setup.ts')
  fillMemoryFile(seccompFd, seccompFilter({ exec: plan.listedExec ? 'listed' : 'any' }))
  const numbers = new Map([...pinned.keys()].map((path, i) => [path, firstGuestFd - pinned.size + i]))
  const inside = showInside(plan, sandbox, undo)
  const began = Date.now()
  const {
    args: words,
    late,
    points,
  } = prepareArguments(inside.plan, {
    staging,
    cacheDir,
    env: (daemon ?? listed)?.env ?? plan.env,
    neighbours: neighbours?.() ?? [],
    descriptors: bwrapFds(placement.joinFds.length),
    hasDoor: placement.hasDoor,
    isFirst: daemon !== undefined,
    descriptor: path => numbers.get(path),
  })
  args.send(words)
  return { inside: inside.dir, late, sweep: () => removeMadePoints(points, began) }
}

/** The group has bubblewrap and the watcher. The init dies with its parent, and every process inside with the init. */
function killAll(group: number, status: BwrapStatus): void {
  const init = status.initPid()
  if (init !== undefined) signal(init, 'SIGKILL')
  signal(-group, 'SIGKILL')
}

interface Parts {
  readonly guard: Guard
  readonly status: BwrapStatus
  readonly crossing: Crossing
  readonly mounts: LiveMounts
  readonly sweep: () => void
}

/** When bubblewrap has mounted everything, on most machines. */
const MOUNTED_MS = 50

function running({ guard, status, crossing, mounts, sweep }: Parts, undo: UndoStack): Running {
  let sweeping: NodeJS.Timeout | undefined
  const sweepLater = (): void => {
    sweeping = setTimeout(() => {
      sweeping = undefined
      if (mounts.ready()) sweep()
      else sweepLater()
    }, MOUNTED_MS)
    sweeping.unref()
  }
  const ended = guard.exited.then(async ({ code, signal: by }): Promise<Ending> => {
    // Without its guard, bubblewrap may wait for pen to unblock it, and pen for its exit code.
    if (by !== null) signal(-guard.pid, 'SIGKILL')
    const exitCode = status.exitCode()
    if (sweeping !== undefined) sweep()
    clearTimeout(sweeping)
    const init = status.initPid()
    if (init !== undefined) await endInit(init)
    await crossing.drained()
    await undo.unwind()
    if (exitCode !== undefined) return { kind: 'exit', code: exitCode }
    if (by !== null) return { kind: 'killed' }
    throw new PenError('BACKEND', {
      what: `bubblewrap could not start the command in a sandbox (exit ${code}); its own message is above`,
      hint:
        init === undefined
          ? USERNS_HINT
          : '`pen plan` shows its mounts and command; `pen run` alone opens a shell there',
    })
  })
  return {
    begin: () => {
      guard.unblock()
      sweepLater()
    },
    ended,
    initPid: () => status.initPid(),
    mounts,
    kill: () => killAll(guard.pid, status),
    // The init itself takes only SIGKILL, so the signal goes to the command's group.
    signal: name => {
      const init = status.initPid()
      if (init !== undefined) signal(-(commandGroup(init) ?? init), name)
    },
  }
}

/**
 * Accepts only a program that root owns. Bubblewrap is pid 1 of the sandbox, and `/proc/1/exe` leads to the file
 * itself, past the read-only mount. The sandbox could overwrite a file that the user may write, such as Homebrew's.
 */
function requireTool(name: string, from: string): string {
  const rootsOwn = TRUSTED_DIRECTORIES.filter(({ owner }) => owner === 'root')
  const tool = findTool(name, rootsOwn)
  if (tool !== undefined) return tool
  throw missingTool(
    name,
    `install ${from}: apt-get install ${from}, dnf install ${from}, pacman -S ${from} or apk add ${from}`,
    rootsOwn,
  )
}
