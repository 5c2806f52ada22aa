/** Translates a plan into bubblewrap's arguments. Pure: `source` maps the paths. */
import { PenError } from '../../base/error.ts'
import type { Plan, Step } from '../../plan/plan.ts'
import { type EtcStep, isEtcStep } from './etc-view.ts'
import { FD } from './guard.ts'

export interface Wiring {
  /** The path at which bubblewrap finds a host path: the path itself, or its staged copy. */
  source(path: string): string
  /** The directory that holds all of `/etc`. */
  readonly etc: string
  /** An empty file without permissions. */
  readonly emptyFile: string
  /** The filter, and the pipe on which bubblewrap waits before it starts the command: it holds both ends. */
  readonly descriptors: { readonly seccomp: number; readonly block: number; readonly hold: number }
  /** True when bubblewrap starts in a network namespace that has a door. */
  readonly hasDoor: boolean
  /**
   * True when the command is pid 1 inside, so that no process there can stop or kill it. Bubblewrap then adds no init
   * of its own.
   */
  readonly isFirst: boolean
  /** The open descriptor of a host path whose owner could swap it for a link between pen's check and the mount. */
  readonly descriptor: (path: string) => number | undefined
}

export function bwrapArguments(plan: Plan, wiring: Wiring): string[] {
  const args = [
    // These come first. If pen is killed while it writes the list, bubblewrap may read only the beginning.
    '--seccomp',
    String(wiring.descriptors.seccomp),
    '--block-fd',
    String(wiring.descriptors.block),
    // Bubblewrap closes it before the command.
    '--sync-fd',
    String(wiring.descriptors.hold),
    ...namespaces(plan, wiring),
    '--clearenv',
    ...plan.env.flatMap(({ name, value }) => ['--setenv', name, value]),
    ...tree(plan.steps, wiring),
    '--chdir',
    plan.cwd,
    '--json-status-fd',
    String(FD.status),
  ]
  // Arguments are separated by NUL, so a NUL in a value would begin another argument.
  if (args.some(argument => argument.includes('\0'))) throw new Error('a NUL in an argument of bubblewrap')
  if (args.length > MAX_WORDS - MIN_COMMAND)
    throw new PenError('BACKEND', {
      what: `the sandbox needs ${plan.steps.length} mounts and ${args.length} words, and bubblewrap accepts at most ${MAX_WORDS} words`,
      hint: 'grant and deny whole directories instead of single files: `pen plan` shows every mount and its reason',
    })
  if (args.length + plan.argv.length > MAX_WORDS)
    throw new PenError('USAGE', {
      what: `the command has ${plan.argv.length} words, and bubblewrap accepts at most ${MAX_WORDS} together with its own`,
      hint: 'expand file names inside: pen run -- sh -c "… *", or use xargs',
    })
  return args
}

/** Bubblewrap accepts 9,000 words, including its own name. */
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
    // No --disable-userns, which costs start time: the seccomp filter refuses every way to make a user namespace.
    '--die-with-parent',
    // A new session: a signal to the sandbox's process group does not reach the guard, and pen's terminal is not its
    // controlling terminal.
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
        ? ['--ro-bind', wiring.emptyFile, step.at]
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
      // All of pen's own files are in /etc, which is one mount.
      throw new Error(`no way to put a file at ${step.at}`)
  }
}
