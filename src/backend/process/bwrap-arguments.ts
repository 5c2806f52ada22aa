/** A plan in bubblewrap's language. Pure: what is mounted from where is looked up in `sources`. */
import { PenError } from '../../base/error.ts'
import type { Plan, Step } from '../../plan/plan.ts'
import { type EtcStep, isEtcStep } from './etc-view.ts'

export interface Wiring {
  /** Where a host path is found by bubblewrap: the path itself, or its staged twin. */
  source(path: string): string
  /** The directory that holds all of `/etc`. */
  readonly etc: string
  /** An empty file that nobody may open. */
  readonly nothing: string
  readonly seccompFd: number
  readonly statusFd: number
  /** Bubblewrap waits here before the command starts. */
  readonly blockFd: number
  /** True when the launcher already put us into a network namespace that has a door. */
  readonly hasDoor: boolean
  /** What is started is the first process inside: nothing there can stop or kill it. Bubblewrap's own is not in the way then. */
  readonly isFirst: boolean
  /** A host path as an open descriptor, where its owner could swap it for a link between our look and the mount. */
  readonly descriptor: (path: string) => number | undefined
}

export function bwrapArguments(plan: Plan, wiring: Wiring): string[] {
  const args = [
    // First: if pen is killed while it writes the list, bubblewrap may read a part of it, and have a moment to obey.
    '--seccomp',
    String(wiring.seccompFd),
    ...namespaces(plan, wiring),
    '--clearenv',
    ...plan.env.flatMap(({ name, value }) => ['--setenv', name, value]),
    ...tree(plan.steps, wiring),
    '--chdir',
    plan.cwd,
    '--json-status-fd',
    String(wiring.statusFd),
    '--block-fd',
    String(wiring.blockFd),
  ]
  // Arguments are parted by NUL on their way: one in a value would begin an argument of its own.
  if (args.some(argument => argument.includes('\0'))) throw new Error('a NUL in an argument of bubblewrap')
  if (args.length > MAX_WORDS - MIN_COMMAND)
    throw new PenError('BACKEND', {
      what: `the sandbox takes ${plan.steps.length} mounts and ${args.length} words, and bubblewrap takes no more than ${MAX_WORDS} words`,
      hint: 'grant and deny whole directories instead of what is in them: `pen plan` shows what is mounted and why',
    })
  if (args.length + plan.argv.length > MAX_WORDS)
    throw new PenError('USAGE', {
      what: `the command has ${plan.argv.length} words, and bubblewrap takes no more than ${MAX_WORDS} with its own`,
      hint: 'name the files inside: pen run -- sh -c "… *", or through xargs',
    })
  return args
}

/** Bubblewrap counts to 9,000, from its own name on. */
const MAX_WORDS = 8990
/** Room for a short command. */
const MIN_COMMAND = 32

function namespaces(plan: Plan, wiring: Wiring): string[] {
  return [
    '--unshare-user',
    '--unshare-ipc',
    '--unshare-pid',
    ...(wiring.hasDoor ? [] : ['--unshare-net']),
    '--unshare-uts',
    '--unshare-cgroup',
    // No --disable-userns: the system call filter refuses every way to a user namespace, and this costs no start time.
    '--die-with-parent',
    // A session of its own: no signal to its process group reaches the guard, and no terminal of ours is its own.
    '--new-session',
    ...(wiring.isFirst ? ['--as-pid-1'] : []),
    '--cap-drop',
    'ALL',
    '--uid',
    String(plan.user.uid),
    '--gid',
    String(plan.user.gid),
    '--hostname',
    plan.hostname,
  ]
}

function tree(steps: readonly Step[], wiring: Wiring): string[] {
  const out: string[] = []
  let etcDone = false
  for (const step of steps) {
    if (isEtcStep(step)) {
      if (!etcDone) out.push('--ro-bind', wiring.etc, '/etc')
      etcDone = true
    } else out.push(...stepArguments(step, wiring))
  }
  return out
}

function stepArguments(step: Exclude<Step, EtcStep> | Step, wiring: Wiring): string[] {
  switch (step.op) {
    case 'bind': {
      const fd = wiring.descriptor(step.from)
      const verb = step.mode === 'ro' ? '--ro-bind' : '--bind'
      return fd === undefined
        ? [verb, wiring.source(step.from), step.at]
        : [`${verb}-fd`, String(fd), step.at]
    }
    case 'tmpfs':
      return [
        '--perms',
        step.mode.toString(8).padStart(4, '0'),
        '--size',
        String(step.size),
        '--tmpfs',
        step.at,
      ]
    case 'cover':
      return step.kind === 'file'
        ? ['--ro-bind', wiring.nothing, step.at]
        : step.passable
          ? ['--perms', '0111', '--size', '4096', '--tmpfs', step.at]
          : ['--perms', '0000', '--size', '4096', '--tmpfs', step.at, '--remount-ro', step.at]
    case 'link':
      return ['--symlink', step.to, step.at]
    case 'devices':
      return ['--dev', step.at]
    case 'processes':
      return ['--proc', step.at]
    case 'seal':
      return ['--remount-ro', step.at]
    case 'file':
      // All of pen's own texts lie in /etc, which is one mount.
      throw new Error(`no way to put a file at ${step.at}`)
  }
}
