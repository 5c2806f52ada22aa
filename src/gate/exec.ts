/**
 * Running programs in a soft sandbox, for tools: each is judged by the policy, recorded, started with the sandbox's own few variables and
 * within bounds, and ended as a whole. Words, variables and output are an agent's: hostile.
 */
import { lstatSync } from 'node:fs'
import type { AuditSink } from '../audit/event.ts'
import { briefly } from '../audit/gate-event.ts'
import { EXIT, PenError } from '../base/error.ts'
import { type ChosenBy, decideTool } from '../policy/decide-tool.ts'
import type { HostPath } from '../policy/path.ts'
import type { Policy } from '../policy/policy.ts'
import { collect } from './collect.ts'
import { findProgram, type Program } from './find-program.ts'
import type { FileJudge } from './judge-file.ts'
import type { ProcessLimits } from './order.ts'
import { countProcesses } from './own-process.ts'
import { Refused } from './refused.ts'
import { type SupervisedEnding, startSupervised } from './supervised.ts'

export interface ExecWorld {
  readonly policy: () => Policy
  readonly audit: AuditSink
  readonly judge: FileJudge
  /** The whole environment of a program; nothing of pen's own. */
  readonly env: Readonly<Record<string, string>>
  readonly runAs: 'self' | { readonly uid: number; readonly gid: number }
}

export interface ExecOptions {
  /** Milliseconds; never more than the policy's ceiling. */
  readonly timeout?: number
  readonly env?: Readonly<Record<string, string>>
  /** In the workspace; the workspace itself if nothing is said. */
  readonly cwd?: string
  readonly stdin?: Uint8Array | string
  /** Bytes of both outputs together; never more than the policy's. */
  readonly maxOutput?: number
  readonly signal?: AbortSignal
}

export interface Executed {
  /** 124 when the time was over, 128+n after signal n. */
  readonly exitCode: number
  readonly stdout: Uint8Array
  readonly stderr: Uint8Array
  readonly timedOut: boolean
  /** More came than was kept. */
  readonly truncated: boolean
  /** Processes that were seen and could not be ended. Others may have escaped unseen where the kernel does not tell. */
  readonly survivors: number
}

/** Marks that a program may not be told otherwise. */
const MARKS = { AGENT_IN_SANDBOX: '1', SOFT_SANDBOX: 'true' }

export async function execute(
  world: ExecWorld,
  argv: readonly string[],
  options: ExecOptions = {},
): Promise<Executed> {
  const policy = world.policy()
  const cwd = directoryOf(world, options.cwd ?? policy.workspace)
  const program = allowProgram(world, argv, cwd, 'agent')
  const env = { ...world.env, ...checkedVariables(options.env ?? {}), ...MARKS }
  const timeout = Math.min(options.timeout ?? policy.exec.timeout, policy.exec.ceiling)
  const began = performance.now()
  const running = startSupervised({
    stdio: [options.stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    identity: world.runAs === 'self' ? undefined : world.runAs,
  })
  let timedOut = false
  const timer = setTimeout(() => {
    timedOut = true
    running.kill()
  }, timeout)
  options.signal?.addEventListener('abort', running.kill, { once: true })
  try {
    const most = Math.min(options.maxOutput ?? policy.exec.maxOutput, policy.exec.maxOutput)
    const output = collect(running.child, most, options.stdin)
    running.begin({ file: program.file, argv, cwd, env, limits: limitsOf(policy, world.runAs, timeout) })
    if (options.signal?.aborted === true) running.kill()
    const { ending, survivors } = await running.ended
    const { stdout, stderr, truncated } = await output.finish()
    const exitCode = timedOut ? EXIT.timeout : exitCodeOf(ending)
    const ms = Math.round(performance.now() - began)
    world.audit.record({
      kind: 'tool-ended',
      command: briefly(argv),
      exitCode,
      ms,
      timedOut,
      truncated,
      survivors,
    })
    return { exitCode, stdout, stderr, timedOut, truncated, survivors }
  } finally {
    clearTimeout(timer)
    options.signal?.removeEventListener('abort', running.kill)
  }
}

/** The program that a command means, when the policy lets it run. A yes is in the audit when this returns. */
export function allowProgram(
  { policy, audit, env }: Pick<ExecWorld, 'policy' | 'audit' | 'env'>,
  argv: readonly string[],
  cwd: string,
  chosenBy: ChosenBy,
): Program {
  const [word = ''] = argv
  const { PATH = '' } = env
  const command = briefly(argv)
  const program = argv.some(other => other.includes('\0'))
    ? undefined
    : findProgram(word, PATH.split(':').filter(Boolean), cwd)
  if (program === undefined) {
    const said = { reason: 'not-found', why: 'there is no such program', cure: 'check the spelling' }
    audit.record({ kind: 'tool-denied', command, ...said })
    throw new Refused({
      what: `it cannot be run: ${said.why}`,
      at: word,
      reason: said.reason,
      cure: said.cure,
    })
  }
  const said = decideTool(policy(), program.tool, chosenBy)
  if (!said.ok) {
    const { reason, why, cure } = said
    audit.record({ kind: 'tool-denied', command, reason, why, cure })
    throw new Refused({ what: `it may not be run: ${why}`, at: word, reason, cure })
  }
  audit.record({ kind: 'tool-allowed', command, program: program.file, rule: said.rule, from: said.from })
  return program
}

function directoryOf({ judge }: ExecWorld, text: string): HostPath {
  const path = judge.find('list', text)
  const said = judge.verdict('list', path)
  if (!said.ok) throw judge.refuse('list', path, said)
  if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return path
  throw new PenError('PATH_REFUSED', { what: 'it is not a directory', at: path, hint: 'name a directory' })
}

function checkedVariables(env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  for (const [name, value] of Object.entries(env))
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || value.includes('\0'))
      throw new PenError('USAGE', { what: 'a variable has a bad name or value', at: name })
  return env
}

/** Threads that pen's own supervisor may still start. */
const SUPERVISOR = 32

/** Processor time is bounded too, because a clock alone lets many programs burn at once. */
export function limitsOf({ limits }: Policy, runAs: ExecWorld['runAs'], timeMs: number): ProcessLimits {
  const uid = runAs === 'self' ? (process.getuid?.() ?? 0) : runAs.uid
  const now = countProcesses(uid)
  return {
    files: limits.files,
    cpu: Math.ceil((timeMs / 1000) * Math.ceil(limits.cpus)) + 1,
    fileSize: limits.disk,
    processes: now === undefined ? undefined : now + limits.pids + SUPERVISOR,
  }
}

export function exitCodeOf(ending: SupervisedEnding): number {
  switch (ending.kind) {
    case 'exit':
      return ending.code
    case 'signal':
      return 128 + (process.getBuiltinModule('node:os').constants.signals[ending.signal] ?? 9)
    case 'not-started':
      return ending.errno === 'ENOENT' ? EXIT.notFound : EXIT.notExecutable
    case 'lost':
      return 128 + 9
  }
}
