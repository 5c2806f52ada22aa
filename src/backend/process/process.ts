/** The process backend: a guard starts bubblewrap, which confines the command by namespaces, mounts and seccomp. */
import { closeSync, writeSync } from 'node:fs'
import { errnoOf, PenError } from '../../base/error.ts'
import { findTool, TRUSTED_DIRECTORIES } from '../../base/find-tool.ts'
import { memoryFile, pipe } from '../../base/kernel/descriptor.ts'
import { signal } from '../../base/kernel/end-processes.ts'
import { isHostRoot } from '../../base/kernel/host-root.ts'
import { missingTool } from '../../base/missing-tool.ts'
import { UndoStack } from '../../base/undo.ts'
import type { Plan } from '../../plan/plan.ts'
import type { Backend, Ending, LiveMounts, Running, StartOptions } from '../backend.ts'
import { prepareMapping, USERNS_HINT } from '../mounts/id-mapping.ts'
import { capabilities } from './capabilities.ts'
import { avoidOwnProcessor } from './cpu-placement.ts'
import { blockFd, FD, firstExtraFd, type GuardOptions, startGuard } from './guard.ts'
import { commandGroup, endInit } from './init.ts'
import { withInsidePath } from './inside-path.ts'
import { pinnedDescriptors } from './pinned.ts'
import { Staging } from './staging.ts'
import { BwrapStatus } from './status.ts'
import { type Crossing, crossStdio } from './stdio.ts'

export const processBackend: Backend = {
  name: 'process',
  network: 'made-by-pen',
  // Only the host's root needs an id mapping. Making it early keeps it off the guard's critical path.
  warm: () => (isHostRoot() ? prepareMapping() : undefined),
  probe: async () => capabilities(),
  start,
}

const arch = process.arch === 'arm64' ? 'arm64' : 'x64'

async function start(given: Plan, options: StartOptions): Promise<Running> {
  const { placement } = options
  const bwrap = requireTool('bwrap', 'bubblewrap')
  const shell = requireTool('sh', 'a POSIX shell')
  const inner = given.listedExec ? await import('./listed.ts') : undefined
  const keeping = options.execDaemon ? await import('./exec-daemon.ts') : undefined
  const undo = new UndoStack()
  let abandon = (): void => undefined
  try {
    const plan = withInsidePath(given)
    const joins = placement.joinFds.length
    const staging = plan.runAs === 'self' ? undefined : new Staging(plan.runAs, undo)
    const [argsFd, argsWriter] = argumentPipe(undo)
    const seccompFd = temporary(undo)
    const pinned = staging === undefined ? pinnedDescriptors(plan, undo) : new Map<string, number>()
    const kept = keeping?.startExecDaemon(plan, undo)
    const identity = plan.runAs === 'self' ? undefined : plan.runAs
    const crossing = crossStdio(kept?.stdio ?? options.stdio, identity)
    undo.push('stdio', () => crossing.closeCopies())
    const innerBase = firstExtraFd(joins) + pinned.size
    const listed =
      kept === undefined ? inner?.startListed(plan, bytes => filled(undo, bytes), undo) : undefined
    /** What bubblewrap starts instead of the command. */
    const first = kept ?? listed
    // The guard starts first and waits: the rest is prepared meanwhile, on another core.
    const guardOptions: GuardOptions = {
      shell,
      argv: [
        ...placement.wrap,
        bwrap,
        '--args',
        String(FD.args),
        '--',
        ...(first?.argv(innerBase) ?? plan.argv),
      ],
      stdio: crossing.stdio,
      argsFd,
      seccompFd,
      joinFds: placement.joinFds,
      extraFds: [...pinned.values(), ...(first?.fds ?? [])],
      env: placement.env,
      limits: { files: plan.limits.files },
      identity,
    }
    const guard = placement.within(() => startGuard(guardOptions))
    undo.push('the guard', () => guard.close())
    const bringBack = avoidOwnProcessor(guard.pid)
    closeSync(argsFd)
    crossing.closeCopies()
    kept?.closeCopies()
    // From here bubblewrap runs, and waits for its arguments: without them it has nothing to start anything from.
    guard.go()
    abandon = () => signal(-guard.pid, 'SIGKILL')

    const { prepareArguments, seccompFilter, showInside } = await import('./bwrap-setup.ts')
    put(seccompFd, seccompFilter(arch, { exec: plan.listedExec ? 'listed' : 'any' }))
    const numbers = new Map([...pinned.keys()].map((path, i) => [path, innerBase - pinned.size + i]))
    const inside = showInside(plan, options.sandbox, undo)
    const args = prepareArguments(inside.plan, {
      staging,
      cacheDir: options.cacheDir,
      env: first?.env ?? plan.env,
      blockFd: blockFd(joins),
      hasDoor: placement.hasDoor,
      isFirst: kept !== undefined,
      descriptor: path => numbers.get(path),
    })
    sendArguments(argsWriter, args)

    const status = new BwrapStatus(guard.statusFd, bringBack)
    abandon = () => killAll(guard.pid, status)
    const init = inner === undefined ? undefined : status.initPid()
    if (init !== undefined) {
      await inner?.makeNoexec(plan.steps, init)
      listed?.release()
    }
    // Loaded while bubblewrap works.
    const { NamespaceMounts } = await import('../mounts/live-mounts.ts')
    const mounts = new NamespaceMounts(() => status.initPid())
    return { ...running(guard, status, crossing, undo, mounts), ...kept?.commands, inside: inside.dir }
  } catch (error) {
    // Kill the guard before its pipes close. An empty argument list would make bubblewrap print an error.
    abandon()
    await undo.unwind()
    throw error
  }
}

/** The group has bubblewrap and the watcher. The init dies with its parent, and every process inside with the init. */
function killAll(group: number, status: BwrapStatus): void {
  const init = status.initPid()
  if (init !== undefined) signal(init, 'SIGKILL')
  signal(-group, 'SIGKILL')
}

function running(
  guard: ReturnType<typeof startGuard>,
  status: BwrapStatus,
  crossing: Crossing,
  undo: UndoStack,
  mounts: LiveMounts,
): Running {
  const ended = guard.exited.then(async ({ code, signal }): Promise<Ending> => {
    const told = status.exitCode()
    const init = status.initPid()
    if (init !== undefined) await endInit(init)
    await crossing.drained()
    await undo.unwind()
    if (told !== undefined) return { kind: 'exit', code: told }
    if (signal !== null) return { kind: 'killed' }
    throw new PenError('BACKEND', {
      what: `bubblewrap could not start the command in a sandbox (exit ${code}); its own message is above`,
      hint:
        init === undefined
          ? USERNS_HINT
          : '`pen plan` shows its mounts and command; `pen run` alone opens a shell there',
    })
  })
  return {
    begin: () => guard.unblock(),
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

/** The read end is for bubblewrap, the write end for pen. `close` may be called twice. */
function argumentPipe(undo: UndoStack): readonly [number, { readonly fd: number; close(): void }] {
  const [reader, fd] = pipe()
  let open = true
  const close = () => {
    if (open) closeSync(fd)
    open = false
  }
  undo.push('the argument pipe', close)
  return [reader, { fd, close }]
}

function sendArguments(writer: { readonly fd: number; close(): void }, args: readonly string[]): void {
  const bytes = Buffer.from(`${args.join('\0')}\0`)
  try {
    for (let done = 0; done < bytes.length; ) done += writeSync(writer.fd, bytes, done)
  } catch (error) {
    // Bubblewrap has ended. Its exit says why.
    if (errnoOf(error) !== 'EPIPE') throw error
  } finally {
    writer.close()
  }
}

/**
 * Accepts only a program that root owns. Bubblewrap is pid 1 of the sandbox, and `/proc/1/exe` leads to the file
 * itself, past the read-only mount. The sandbox could overwrite a file that the user may write, such as Homebrew's.
 */
function requireTool(name: string, what: string): string {
  const rootsOwn = TRUSTED_DIRECTORIES.filter(({ owner }) => owner === 'root')
  const tool = findTool(name, rootsOwn)
  if (tool !== undefined) return tool
  throw missingTool(
    name,
    `install ${what}: apt-get install bubblewrap, dnf install bubblewrap, pacman -S bubblewrap or apk add bubblewrap`,
    rootsOwn,
  )
}

/** A file in memory, which has no path on a disk. */
function temporary(undo: UndoStack): number {
  const fd = memoryFile()
  undo.push('a memory file', () => closeSync(fd))
  return fd
}

function filled(undo: UndoStack, bytes: Uint8Array): number {
  const fd = temporary(undo)
  put(fd, bytes)
  return fd
}

/** Writes at an offset, so that the child reads from the beginning. */
function put(fd: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done, bytes.length - done, done)
}
