/**
 * The soft backend, for machines without an engine or namespaces. The gate judges and records the command. A supervise
 * process starts it with few variables, its own home, limits, and proxy variables that it may ignore. The kernel does
 * not confine it, and every gap is named.
 */
import type { AuditSink } from '../../audit/event.ts'
import { shortCommand } from '../../audit/line.ts'
import { PenError } from '../../base/error.ts'
import { enforcementOf, limitSupport } from '../../limits/probe.ts'
import type { Capabilities } from '../../plan/gaps.ts'
import type { Plan } from '../../plan/plan.ts'
import type { Backend, Ending, Running, StartOptions } from '../backend.ts'
import { crossStdio } from '../process/stdio.ts'
import { startExecDaemon } from './exec-daemon.ts'
import { allowProgram, exitCodeOf, limitsOf } from './gate/exec.ts'
import { startSupervised } from './gate/supervised.ts'
import { makePrivateDirectories, type PrivateDirectories } from './private-directories.ts'

export const softBackend: Backend = {
  name: 'soft',
  network: 'loopback',
  probe: async () => capabilities(),
  start,
}

/** What pen can do without kernel isolation: judge requests, and watch the processes that it started. */
const capabilities = (): Capabilities => ({
  backend: 'soft',
  isolation: 'soft',
  kernelFiles: false,
  networkNamespace: false,
  gateway: true,
  bridge: false,
  seccomp: false,
  listedExec: false,
  images: false,
  mapsUser: false,
  daemonUser: false,
  ports: false,
  sshAgent: false,
  review: false,
  limits: limits(),
})

/** Linux only: processes are found in `/proc`, and cgroups may exist without namespaces. */
const limits = (): Capabilities['limits'] =>
  process.platform === 'linux'
    ? enforcementOf(limitSupport().held)
    : enforcementOf(new Set(), { watched: 'none' })

async function start(plan: Plan, options: StartOptions): Promise<Running> {
  const identity = plan.runAs === 'self' ? undefined : plan.runAs
  if (identity?.uid === 0)
    throw new PenError('BACKEND', {
      what: 'no command may run as root',
      hint: 'set user to an ordinary one, or leave it out',
    })
  const places = makePrivateDirectories(options.sandbox.stateDir, identity, plan.gitIdentity)
  const env = {
    ...Object.fromEntries(plan.env.map(({ name, value }) => [name, value])),
    HOME: places.home,
    TMPDIR: places.scratch,
  }
  try {
    if (options.execDaemon) return await startExecDaemon(plan, options, places, env)
    return supervise(plan, options, identity, places, env)
  } catch (error) {
    places.remove()
    throw error
  }
}

function supervise(
  plan: Plan,
  options: StartOptions,
  identity: { readonly uid: number; readonly gid: number } | undefined,
  places: PrivateDirectories,
  env: Record<string, string>,
): Running {
  const { placement, rules } = options
  const crossing = process.platform === 'linux' ? crossStdio(options.stdio, identity) : undefined
  const supervised = startSupervised({ stdio: crossing?.stdio ?? options.stdio, identity, placement })
  crossing?.closeCopies()
  const began = performance.now()
  let record: AuditSink['record'] | undefined
  let killed = false
  const ended = supervised.ended.then(async ({ ending, survivors }): Promise<Ending> => {
    await crossing?.drained()
    places.remove()
    const exitCode = killed ? 128 + 9 : exitCodeOf(ending)
    const ms = Math.round(performance.now() - began)
    const command = shortCommand(rules.command)
    record?.({ kind: 'tool-ended', command, exitCode, ms, timedOut: false, truncated: false, survivors })
    return killed ? { kind: 'killed' } : { kind: 'exit', code: exitCode }
  })
  return {
    sharesHost: true,
    begin: audit => {
      const policy = () => rules.policy
      const { file } = allowProgram({ policy, audit, env }, rules.command, plan.cwd, 'user')
      record = event => audit.record(event)
      const isPlain = plan.argv[0] === rules.command[0]
      supervised.begin({
        // When pen adds words in front, they find the same program by the same search.
        file: isPlain ? file : (plan.argv[0] ?? file),
        argv: plan.argv,
        cwd: plan.cwd,
        env,
        limits: limitsOf(rules.policy, plan.runAs, plan.limits.wall),
      })
    },
    ended,
    initPid: () => supervised.pid,
    kill: () => {
      killed = true
      supervised.kill()
    },
    signal: supervised.signal,
  }
}
