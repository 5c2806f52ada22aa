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
export const FD = { life: 3, status: 4, witness: 5, layer: 6, firstJoin: 7 } as const

/** Bubblewrap alone uses the other descriptors: its arguments, the filter, one to wait on, and those that it mounts. */
export const bwrapFds = (joins: number) => {
  const first = FD.firstJoin + joins
  return { args: first, seccomp: first + 1, block: first + 2, hold: first + 3, firstExtra: first + 4 }
}

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
  /** The watcher writes a line here when it has ended the sandbox. Nothing else gets it. */
  readonly witnessFd: number | undefined
  /** The lock of the review layer. The watcher holds it until the sandbox has ended, also when pen was killed. */
  readonly layerFd: number | undefined
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

/**
 * The children of this shell are the watcher, which has none, and bubblewrap, whose child is the sandbox's init. The init ends
 * after all other processes of its namespace, and may then wait as a zombie for bubblewrap. Only then the watcher writes its
 * line: the time and the uptime say when the sandbox had ended. When that takes too long, there is no line.
 */
const KILL_ALL = [
  'read kids </proc/$$/task/$$/children; all=',
  'for kid in $kids; do inits=; read inits </proc/$kid/task/$kid/children; all="$all $inits"; done',
  'n=0; kill -9 $all && while [ $n -lt 75 ]; do left=',
  // The state follows the last parenthesis: a process chooses the name before it.
  `for init in $all; do state=; read -r state </proc/$init/stat; case \${state##*) } in Z*|X*|"") ;; *) left=1; esac; done`,
  `[ -n "$left" ] || { read up _ </proc/uptime; echo "ended $up" >&${FD.witness}; break; }`,
  'n=$((n+1)); sleep 0.02; done',
  'kill -9 0',
].join('; ')

export function startGuard(options: GuardOptions): Guard {
  const [lifeRead, lifeWrite] = pipe()
  const [statusRead, statusWrite] = pipe()
  const [blockRead, blockWrite] = pipe()
  const joins = options.joinFds.map((_, i) => FD.firstJoin + i)
  const script = [
    `read _ <&${FD.life} || exit 125`,
    `{ read _; ${KILL_ALL}; } <&${FD.life} >/dev/null 2>&1 ${[FD.status, ...joins].map(fd => `${fd}>&-`).join(' ')} &`,
    `exec ${FD.life}<&- ${FD.witness}>&- ${FD.layer}>&-`,
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
      lifeRead,
      statusWrite,
      options.witnessFd ?? 'ignore',
      // Every number needs a descriptor, and this one is open.
      options.layerFd ?? lifeRead,
      ...options.joinFds,
      options.argsFd,
      options.seccompFd,
      blockRead,
      // Bubblewrap takes the end of the file for "go". With this, a killed pen never starts the command.
      blockWrite,
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
