/**
 * A shell of twenty words that starts bubblewrap and outlives nothing. It waits for one line, which says that the plan
 * is complete; then it joins the cgroups, and leaves a twin that ends the whole process group when pen is gone.
 * bubblewrap's own `--die-with-parent` comes too late: a pen killed within its first milliseconds left a sandbox behind.
 *
 * The shell stays bubblewrap's parent, so that bubblewrap outlives pen for as long as the twin needs to find its child: for
 * a moment of every start that child has already left the group, and has not yet asked to die with its parent.
 */
import { closeSync, writeSync } from 'node:fs'
import { pipe } from '../../base/kernel/descriptor.ts'
import { leaveNoCore } from '../../base/kernel/process.ts'
import { startProgram } from '../../base/start-program.ts'

/** Descriptors of the guard. A POSIX shell can only name single digits in redirections. */
export const FD = { args: 3, seccomp: 4, life: 5, status: 6, firstJoin: 7 } as const

/** The rest is bubblewrap's own to name: where it waits, and what it mounts by descriptor. */
export const blockFd = (joins: number): number => FD.firstJoin + joins
export const firstExtraFd = (joins: number): number => blockFd(joins) + 1

export interface GuardOptions {
  readonly shell: string
  /** `bwrap --args 3 -- command`, perhaps behind a wrapper. */
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
  /** The shell that waits for bubblewrap, and leads the group that the twin ends. */
  readonly pid: number
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
  /** What bubblewrap says of itself: JSON documents, then the end. */
  readonly statusFd: number
  /** Starts it. Until then nothing has happened, and if pen dies before, nothing will. */
  go(): void
  /** Lets the command start, once everything that watches it is in place. */
  unblock(): void
  /** Gives up the descriptors, when everything has ended. */
  close(): void
}

/** The children of this shell are the twin, which has none, and bubblewrap, whose child is the sandbox's init. */
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
    // The group that the twin ends must hold nothing of the user's own.
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
