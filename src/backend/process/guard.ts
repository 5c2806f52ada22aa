/**
 * A short shell script that starts bubblewrap, and ends with it. It waits for one line, which says that the plan is
 * complete. Then it joins the cgroups and forks a watcher, which kills the whole process group when pen dies.
 * `--die-with-parent` alone comes too late: a pen that was killed in its first milliseconds left a sandbox behind.
 *
 * The shell stays the parent of bubblewrap, so bubblewrap outlives pen until the watcher has found its child. For a
 * moment of every start that child has left the group, and has not yet asked to die with its parent.
 */
import { closeSync, writeSync } from 'node:fs'
import { pipe } from '../../base/kernel/descriptor.ts'
import { leaveNoCore } from '../../base/kernel/process.ts'
import { startProgram } from '../../base/start-program.ts'

/** Descriptors of the guard. A POSIX shell accepts only single digits in redirections. */
export const FD = { args: 3, seccomp: 4, life: 5, status: 6, firstJoin: 7 } as const

/** Bubblewrap itself uses the other descriptors: one to wait on, and those that it mounts. */
export const blockFd = (joins: number): number => FD.firstJoin + joins
export const firstExtraFd = (joins: number): number => blockFd(joins) + 1

export interface GuardOptions {
  readonly shell: string
  /** `bwrap --args 3 -- command`, with or without a wrapper in front. */
  readonly argv: readonly string[]
  readonly stdio: readonly [number | 'inherit', number | 'inherit', number | 'inherit']
  readonly argsFd: number
  readonly seccompFd: number
  /** Open `tasks` or `cgroup.procs` files, at most three. */
  readonly joinFds: readonly number[]
  readonly extraFds: readonly number[]
  readonly limits: { readonly files: number }
  readonly env: Readonly<Record<string, string>>
  readonly identity: { readonly uid: number; readonly gid: number } | undefined
}

export interface Guard {
  /** The shell that is bubblewrap's parent. It leads the process group that the watcher kills. */
  readonly pid: number
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
  /** The JSON documents of bubblewrap, then the end of the file. */
  readonly statusFd: number
  /** Starts bubblewrap. If pen dies before this, the guard exits and nothing starts. */
  go(): void
  /** Starts the command, once everything that watches it is in place. */
  unblock(): void
  /** Closes the descriptors, when every process has ended. */
  close(): void
}

/** The children of this shell are the watcher, which has none, and bubblewrap, whose child is the sandbox's init. */
const KILL_ALL =
  'read kids </proc/$$/task/$$/children; for kid in $kids; do read inits </proc/$kid/task/$kid/children; [ -z "$inits" ] || kill -9 $inits; done; kill -9 0'

export function startGuard(options: GuardOptions): Guard {
  const [lifeRead, lifeWrite] = pipe()
  const [statusRead, statusWrite] = pipe()
  const [blockRead, blockWrite] = pipe()
  const joins = options.joinFds.map((_, i) => FD.firstJoin + i)
  const script = [
    `read _ <&${FD.life} || exit 125`,
    `{ read _; ${KILL_ALL}; } <&${FD.life} >/dev/null 2>&1 ${[FD.args, FD.seccomp, FD.status, ...joins].map(fd => `${fd}>&-`).join(' ')} &`,
    `exec ${FD.life}<&-`,
    ...joins.map(fd => `echo 0 >&${fd} || exit 125; exec ${fd}>&-`),
    `ulimit -n ${options.limits.files} 2>/dev/null || ulimit -n "$(ulimit -H -n)"`,
    'unset PWD OLDPWD',
    '"$@"',
  ].join('\n')
  leaveNoCore()
  const exit = Promise.withResolvers<{ code: number | null; signal: NodeJS.Signals | null }>()
  const child = startProgram([options.shell, '-c', script, 'pen', ...options.argv], {
    stdio: [
      ...options.stdio,
      options.argsFd,
      options.seccompFd,
      lifeRead,
      statusWrite,
      ...options.joinFds,
      blockRead,
      ...options.extraFds,
    ],
    // The watcher kills this group, so it must hold no process of the user.
    detached: true,
    env: { ...options.env },
    cwd: '/',
    ...(options.identity === undefined ? {} : { uid: options.identity.uid, gid: options.identity.gid }),
    onExit: (_child, code, signal) => exit.resolve({ code, signal: signal as NodeJS.Signals | null }),
  } as Parameters<typeof startProgram>[1])
  for (const fd of [lifeRead, statusWrite, blockRead]) closeSync(fd)
  let open = true
  return {
    pid: child.pid,
    exited: exit.promise,
    statusFd: statusRead,
    go: () => void writeSync(lifeWrite, '\n'),
    unblock: () => void writeSync(blockWrite, 'x'),
    close: () => {
      if (!open) return
      open = false
      for (const fd of [lifeWrite, statusRead, blockWrite]) closeSync(fd)
    },
  }
}
